#include "reference/standard.h"

#include <memory>

#include "core/text.h"
#include "reference/arena.h"
#include "reference/implementations.h"

namespace strobe::reference {
namespace {

Matrices take_matrices(Arena& arena, std::int64_t batch, std::int64_t heads, std::int64_t rows,
                       std::int64_t columns, std::size_t element_bytes) {
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  return {.offset = arena.take(Wide{batch} * heads * rows * columns * bytes),
          .heads = heads,
          .rows = rows,
          .columns = columns,
          .element_bytes = bytes};
}

class Standard final : public Implementation {
 public:
  std::string_view name() const override { return "standard"; }
  std::string_view summary() const override {
    return "unfused: QK^T, softmax and PV as whole passes with the scores in memory";
  }
  Device::Kind device() const override { return Device::Kind::cpu; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    return floating_point_only(problem);
  }

 private:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const int threads = options.threads > 0 ? options.threads : default_threads();
    auto state = std::make_shared<const StandardPlan>(problem, threads);
    return {
        .problem = problem,
        .tuning = {{"algorithm", "unfused"},
                   {"scores", concat(name_of(problem.dtype), " ", problem.batch, "x", problem.heads,
                                     "x", problem.seqlen_q, "x", problem.keys())},
                   {"threads", concat(threads)}},
        .workspace_bytes = static_cast<std::size_t>(state->bytes),
        .state = state};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace, Stream) const override {
    const StandardRun run{.problem = plan.problem,
                          .tensors = tensors,
                          .plan = *static_cast<const StandardPlan*>(plan.state.get()),
                          .workspace = static_cast<std::byte*>(workspace)};
    plan.problem.pass == Pass::forward ? standard_forward(run) : standard_backward(run);
  }
};

}  // namespace

StandardPlan::StandardPlan(const Problem& problem, int thread_count) : threads(thread_count) {
  const std::int64_t batch = problem.batch, heads = problem.heads, kv_heads = problem.kv_heads();
  const std::int64_t queries = problem.seqlen_q, keys = problem.keys();
  const std::int64_t dim = problem.dim, dim_v = problem.value_dim();
  // Transposed rows are one cache line longer than they need to be: rows a power of two apart
  // would fight for the same few cache sets.
  const std::int64_t keys_padded = (keys + 15) / 16 * 16 + 16;
  const std::size_t element = size_of(problem.dtype);
  Arena arena("standard attention");

  q = take_matrices(arena, batch, heads, queries, dim, sizeof(float));
  k_t = take_matrices(arena, batch, kv_heads, dim, keys_padded, sizeof(float));
  scores = take_matrices(arena, batch, heads, queries, keys, element);
  if (problem.pass == Pass::forward) {
    v = take_matrices(arena, batch, kv_heads, keys, dim_v, sizeof(float));
  } else {
    k = take_matrices(arena, batch, kv_heads, keys, dim, sizeof(float));
    v_t = take_matrices(arena, batch, kv_heads, dim_v, keys_padded, sizeof(float));
    dout = take_matrices(arena, batch, heads, queries, dim_v, sizeof(float));
    dscores = take_matrices(arena, batch, heads, queries, keys, element);
    if (problem.softcap != 0) capped = take_matrices(arena, batch, heads, queries, keys, element);
    if (problem.sinks) sinks = take_matrices(arena, batch, heads, 1, queries, sizeof(float));
    marks = take_matrices(arena, 1, threads, kBlock, kBlock, sizeof(float));
    weights = take_matrices(arena, 1, threads, kBlock, kBlock, sizeof(float));
  }
  scores_row = take_matrices(arena, 1, threads, 1, keys, sizeof(float));
  other_row = take_matrices(arena, 1, threads, 1, keys, sizeof(float));
  sums = take_matrices(arena, 1, threads, kBlock, std::max(dim, dim_v), sizeof(float));
  bytes = arena.bytes();
}

std::unique_ptr<Implementation> make_standard() {
  return std::make_unique<Standard>();
}

}  // namespace strobe::reference
