#include "verify/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "verify/outputs.h"
#include "verify/parts.h"
#include "verify/random.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

/// Streams of the generator, one for each tensor.
enum StreamNumber : std::uint32_t { kQ = 1, kK, kV, kDout, kBias, kSinks };

void poison_elements(const TensorView& view) {
  const Rows rows(view);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    std::fill(rows[row].begin(), rows[row].end(), kPoison);
  }
}

/// The first element that was not written, -1 if all were.
std::int64_t first_unwritten(const TensorView& view) {
  constexpr std::int64_t kLeastElements = 1 << 20;
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const Rows rows(view);
  const auto element = static_cast<std::ptrdiff_t>(size_of(view.dtype));
  std::atomic<std::int64_t> found = kNone;
  in_parts(rows.count(), kLeastElements / std::max<std::int64_t>(rows.row_length(), 1),
           [&](std::int64_t first, std::int64_t last) {
             for (std::int64_t row = first; row < last && found > row * rows.row_length(); ++row) {
               const std::ptrdiff_t at = first_poison(rows[row], size_of(view.dtype));
               if (at < 0) continue;
               std::int64_t before = found;
               const std::int64_t here = row * rows.row_length() + at / element;
               while (here < before && !found.compare_exchange_weak(before, here)) {
               }
               return;
             }
           });
  return found == kNone ? -1 : found.load();
}

/// Slopes as in the ALiBi paper, a geometric sequence over the heads; other sequences of the
/// batch get a multiple, so that mixing them up shows.
float alibi_slope(std::uint64_t index, std::int64_t heads) {
  const auto head = static_cast<double>(index % static_cast<std::uint64_t>(heads));
  const auto sequence = static_cast<double>(index / static_cast<std::uint64_t>(heads));
  return static_cast<float>(std::exp2(-8 * (head + 1) / static_cast<double>(heads)) *
                            (1 + sequence));
}

}  // namespace

Operands::Operands(const Case& what) : what_(what) {
  what_.problem.validate();
  place_inputs();
  place_outputs();
  fill_inputs();
}

void Operands::place_inputs() {
  const Problem& p = what_.problem;
  Placement placement(what_, inputs_);
  placement.sequences("", true, all_.q, all_.k, all_.v);
  if (p.varlen()) {
    all_.cu_seqlens_q = placement.offsets("cu_seqlens_q", p.lengths_q);
    all_.cu_seqlens_k = placement.offsets("cu_seqlens_k", p.lengths_k);
  }
  if (p.bias) all_.bias = placement.bias("bias");
  if (p.sinks) all_.sinks = placement.plain("sinks", DType::fp32, {p.heads});
  if (p.alibi) {
    using Shape = std::vector<std::int64_t>;
    all_.alibi_slopes = placement.plain("alibi_slopes", DType::fp32,
                                        p.batch > 1 ? Shape{p.batch, p.heads} : Shape{p.heads});
  }
  if (p.pass == Pass::backward) {
    const bool strided = what_.inputs.storage == Storage::noncontiguous_dout;
    all_.dout = strided ? placement.strided_dout() : placement.query_like("dout");
  }
}

void Operands::place_outputs() {
  const Problem& p = what_.problem;
  Placement forward(what_, results_);
  all_.out = forward.query_like("out");
  all_.lse = forward.lse();
  if (p.pass == Pass::forward) return;
  Placement backward(what_, gradients_);
  backward.sequences("d", false, all_.dq, all_.dk, all_.dv);
  if (p.bias) all_.dbias = backward.bias("dbias");
  if (p.sinks) all_.dsinks = backward.plain("dsinks", DType::fp32, {p.heads});
}

void Operands::fill_inputs() {
  fill_sequences();
  fill_extras();
}

void Operands::fill_sequences() {
  const Inputs& inputs = what_.inputs;
  const auto factor = static_cast<float>(inputs.scale);
  const auto normal = [factor](RandomStream& stream, std::uint64_t i) {
    return factor * stream.normal(i);
  };
  const auto positive = [factor](RandomStream& stream, std::uint64_t i) {
    return factor * std::fabs(stream.normal(i));
  };
  const auto negative = [factor](RandomStream& stream, std::uint64_t i) {
    return -factor * std::fabs(stream.normal(i));
  };
  const bool opposed = inputs.distribution == Distribution::opposed;
  fill(all_.q, {inputs.seed, kQ}, opposed ? ElementValue(positive) : ElementValue(normal));
  fill(all_.k, {inputs.seed, kK}, opposed ? ElementValue(negative) : ElementValue(normal));
  fill(all_.v, {inputs.seed, kV}, normal);
}

void Operands::fill_extras() {
  const std::uint64_t seed = what_.inputs.seed;
  const auto normal = [](RandomStream& stream, std::uint64_t i) { return stream.normal(i); };
  if (all_.dout.given()) fill(all_.dout, {seed, kDout}, normal);
  if (all_.sinks.given()) fill(all_.sinks, {seed, kSinks}, normal);
  if (all_.alibi_slopes.given()) {
    const std::int64_t heads = what_.problem.heads;
    fill(all_.alibi_slopes, {seed, 0},
         [heads](RandomStream&, std::uint64_t i) { return alibi_slope(i, heads); });
  }
  if (!all_.bias.given()) return;
  if (!what_.inputs.masked_bias) return fill(all_.bias, {seed, kBias}, normal);
  // One row in eight sees nothing; of the others, one key in three is hidden.
  const auto keys = static_cast<std::uint64_t>(what_.problem.keys());
  fill(all_.bias, {seed, kBias}, [keys](RandomStream& stream, std::uint64_t i) {
    const bool hidden = i / keys % 8 == 3 || stream.word(i) % 3 == 0;
    return hidden ? -std::numeric_limits<float>::infinity() : stream.normal(i);
  });
}

Tensors Operands::tensors(Pass pass) const {
  Tensors views = all_;
  if (pass == Pass::forward) {
    views.dout = {};
    for (const auto& output : kOutputs) {
      if (output.pass == Pass::backward) views.*output.view = {};
    }
  }
  return views;
}

void Operands::poison_outputs(Pass pass) {
  for (auto& owned : pass == Pass::forward ? results_ : gradients_) owned.buffer.poison();
}

std::string Operands::unwritten(Pass pass, const Tensors& given) const {
  for (const auto& output : kOutputs) {
    const TensorView& view = all_.*output.view;
    if (output.pass != pass || !(given.*output.view).given()) continue;
    const std::int64_t element = first_unwritten(view);
    if (element >= 0) return fmt::format("{} {}", output.name, index_text(view, element));
  }
  return "";
}

std::string Operands::written(Pass pass) const {
  for (const auto& owned : pass == Pass::forward ? results_ : gradients_) {
    if (!is_poison(owned.buffer.payload())) return owned.name;
  }
  return "";
}

std::string Operands::damaged_surroundings() {
  for (const auto& output : kOutputs) {
    if ((all_.*output.view).given()) poison_elements(all_.*output.view);
  }
  for (const auto* owners : {&results_, &gradients_}) {
    for (const auto& owned : *owners) {
      if (!owned.buffer.guards_intact() || !is_poison(owned.buffer.payload())) return owned.name;
    }
  }
  return "";
}

std::uint64_t Operands::inputs_fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  for (const auto& owned : inputs_) {
    const auto bytes = owned.buffer.payload();
    for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
      hash = (hash ^ word) * 0x100000001b3;
    }
  }
  return hash;
}

std::string index_text(const TensorView& view, std::int64_t element) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(view.rank));
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = element % view.shape[axis];
    element /= view.shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace strobe::lab
