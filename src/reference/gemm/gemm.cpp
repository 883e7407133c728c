#include "reference/gemm/gemm.h"

#include <algorithm>
#include <memory>

#include "core/text.h"
#include "core/threads.h"
#include "reference/arena.h"
#include "strobe/registry.h"

namespace strobe::reference::gemm {
namespace {

Piece take_piece(Arena& arena, int copies, std::int64_t a, std::int64_t b, std::int64_t c,
                 std::size_t element) {
  const Wide each = Arena::padded(Wide{a} * b * c * static_cast<Wide>(element));
  const std::int64_t offset = arena.take(each * copies);
  return {.offset = offset, .each = static_cast<std::int64_t>(each)};
}

/// Keys that a row of scores of the backward pass must have room for.
std::int64_t longest_span(const Problem& problem, std::int64_t query_block,
                          std::int64_t key_block) {
  const Window window = problem.effective_window();
  const std::int64_t keys = std::min(problem.keys(), problem.total_k());
  if (window.left < 0 || window.right < 0) return keys;
  const Wide seen = Wide{window.left} + window.right + query_block + key_block;
  return static_cast<std::int64_t>(std::min<Wide>(seen, keys));
}

class Gemm final : public Implementation {
 public:
  std::string_view name() const override { return "gemm"; }
  std::string_view summary() const override {
    return "attention by a library's matrix products: oneDNN or OpenBLAS, where installed";
  }
  Device::Kind device() const override { return Device::Kind::cpu; }

  Support supports(const Problem& problem, const PlanOptions& /*options*/) const override {
    Support support = floating_point_only(problem);
    if (problem.pass == Pass::backward && problem.bias && *problem.bias != Bias{}) {
      support.missing.push_back("the gradient of a bias that is broadcast (has bias:bhqk)");
    }
    if (Found found = find_library(); found.library == nullptr) {
      support.missing.push_back(std::move(found.missing));
    }
    return support;
  }

 private:
  Plan make_plan(const Problem& problem, const PlanOptions& options) const override {
    const int threads = options.threads > 0 ? options.threads : default_threads();
    const Library& library = *find_library().library;
    auto state = std::make_shared<const GemmPlan>(problem, library, threads);
    return {.problem = problem,
            .tuning = {{"library", library.name()},
                       {"products", state->bf16 ? "bf16" : "fp32"},
                       {"threads", concat(threads)},
                       {"query_block", concat(state->query_block)},
                       {"key_block", concat(state->key_block)}},
            .workspace_bytes = static_cast<std::size_t>(state->bytes),
            .state = state};
  }

  void execute(const Plan& plan, const Tensors& tensors, void* workspace, Stream) const override {
    const GemmRun run{.problem = plan.problem,
                      .tensors = tensors,
                      .plan = *static_cast<const GemmPlan*>(plan.state.get()),
                      .workspace = static_cast<std::byte*>(workspace)};
    const Call call(*run.plan.library);
    pack_keys(run);
    plan.problem.pass == Pass::forward ? gemm_forward(run) : gemm_backward(run);
  }
};

}  // namespace

GemmPlan::GemmPlan(const Problem& problem, const Library& which, int thread_count)
    : library(&which),
      kernels(&row_kernels()),
      threads(thread_count),
      bf16(problem.dtype == DType::bf16 && which.multiplies_bf16()) {
  const bool backward = problem.pass == Pass::backward;
  const std::int64_t kv_heads = problem.kv_heads(), keys = problem.total_k();
  const std::int64_t dim = problem.dim, dim_v = problem.value_dim();
  const std::size_t element = element_bytes();
  choose_blocks(problem);
  Arena arena("attention by matrix products");

  k = take_piece(arena, 1, kv_heads, keys, dim, element);
  v = take_piece(arena, 1, kv_heads, keys, dim_v, element);
  finite_k = take_piece(arena, 1, kv_heads, finite_blocks, 1, sizeof(bool));
  finite_v = take_piece(arena, 1, kv_heads, finite_blocks, 1, sizeof(bool));
  queries = take_piece(arena, threads, query_block, dim, 1, element);
  scores = take_piece(arena, threads, query_block, span, 1, sizeof(float));
  if (bf16) weights = take_piece(arena, threads, query_block, span, 1, element);
  if (problem.bias || problem.dropout != 0)
    row = take_piece(arena, threads, span, 1, 1, sizeof(float));
  sums = take_piece(arena, threads, query_block, std::max(dim, dim_v), 1, sizeof(float));
  if (backward) {
    dk = take_piece(arena, 1, parts * kv_heads, keys, dim, sizeof(float));
    dv = take_piece(arena, 1, parts * kv_heads, keys, dim_v, sizeof(float));
    if (problem.sinks)
      dsinks = take_piece(arena, 1, problem.heads, problem.total_q(), 1, sizeof(float));
    douts = take_piece(arena, threads, query_block, dim_v, 1, element);
    gradients = take_piece(arena, threads, query_block, span, 1, sizeof(float));
    if (bf16) gradient_weights = take_piece(arena, threads, query_block, span, 1, element);
    if (problem.softcap != 0)
      slopes = take_piece(arena, threads, query_block, span, 1, sizeof(float));
  }
  bytes = arena.bytes();
}

// Sizes by measurement: a block of scores that stays in the second-level cache, and few enough rows
// under a mask that little of the last block of keys is computed in vain. They depend on the
// problem alone, and so do the order of every sum and the result.
void GemmPlan::choose_blocks(const Problem& problem) {
  constexpr std::int64_t kScores = 256 * 1024;  // of the backward pass, in a block
  constexpr std::int64_t kItems = 16;           // for threads to share out, if heads are few
  const Window window = problem.effective_window();
  const bool masked = window.left >= 0 || window.right >= 0;
  const std::int64_t queries_at_all = std::max<std::int64_t>(problem.seqlen_q, 1);
  const std::int64_t keys = std::min(problem.keys(), problem.total_k());

  key_block = bf16 ? 256 : 512;
  finite_blocks = problem.total_k() / key_block + problem.batch;
  if (problem.pass == Pass::forward) {
    query_block = std::min<std::int64_t>(masked ? 128 : bf16 ? 192 : 256, queries_at_all);
    span = std::min(key_block, keys);
    return;
  }
  // Whole rows, for the exact sum of a row's probabilities is needed before any of its gradients.
  // An odd number of cache lines apart, so that they do not fight for the same cache sets.
  query_block =
      std::clamp<std::int64_t>(kScores / std::max<std::int64_t>(keys, 1) / 16 * 16, 32, 256);
  query_block = std::min(query_block, queries_at_all);
  span = (longest_span(problem, query_block, key_block) + 31) / 32 * 32 + 16;
  const std::int64_t heads = std::max<std::int64_t>(problem.batch * problem.kv_heads(), 1);
  const std::int64_t most = (queries_at_all + 2 * query_block - 1) / (2 * query_block);
  parts = std::clamp<std::int64_t>(kItems / heads, 1, most);
}

void register_implementations(Registry& registry);

void register_implementations(Registry& registry) {
  registry.add(std::make_unique<Gemm>());
}

}  // namespace strobe::reference::gemm
