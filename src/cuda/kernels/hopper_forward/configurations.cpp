#include "cuda/kernels/hopper_forward/hopper_forward.h"

namespace strobe::cuda::hopper_forward {
namespace {

constexpr long long kFew = 512;
constexpr long long kShort = 1536;  // whole tiles, whatever their size
constexpr long long kLong = 16384;

struct Wanted {
  HopperForwardFeatures features{};
  long long keys = kShort;
};

using List = std::vector<Wanted>;

void add_usual_dims(List& list) {
  for (const int dim : {64, 96, 128, 192, 256}) {
    for (const bool causal : {false, true})
      list.push_back({{.dim = dim, .value_dim = dim, .window_right = causal}});
    list.push_back({{.dim = dim, .value_dim = dim, .window_left = true, .window_right = true}});
  }
  for (const int dim : {64, 128, 192, 256}) {
    for (const bool causal : {false, true})
      list.push_back({{.dim = dim, .value_dim = dim, .window_right = causal}, kLong});
  }
  list.push_back({{.dim = 256, .value_dim = 256, .window_right = true}, kFew});
  list.push_back({{.window_left = true}, kLong});
  list.push_back({{.dim = 64, .value_dim = 64, .window_left = true, .window_right = true}, kLong});
  list.push_back({{.arithmetic = Arithmetic::fp16}});
  list.push_back(
      {{.arithmetic = Arithmetic::fp16, .dim = 64, .value_dim = 64, .window_right = true}});
}

/// Those that are no multiple of 32, and values of another dim than keys.
void add_other_dims(List& list) {
  list.push_back({{.dim = 40, .value_dim = 40}});
  for (const int dim : {136, 144}) {
    for (const bool causal : {false, true})
      list.push_back({{.dim = dim, .value_dim = dim, .window_right = causal}});
  }
  list.push_back({{.arithmetic = Arithmetic::fp16, .dim = 129, .value_dim = 129}});
  list.push_back({{.dim = 59, .value_dim = 59, .variable_length = true}});
  list.push_back({{.dim = 249, .value_dim = 33, .window_left = true, .sinks = true}});
  list.push_back({{.dim = 192, .value_dim = 128, .window_right = true}});
  list.push_back({{.dim = 64, .value_dim = 256}});
  list.push_back({{.dim = 128, .value_dim = 64}});
}

/// Heads that begin within chunks of 16 bytes.
void add_shifted_heads(List& list) {
  for (const int unit : {8, 16}) {
    for (const bool causal : {false, true})
      list.push_back({{.dim = 129,
                       .value_dim = 129,
                       .shifted = true,
                       .head_unit = unit,
                       .window_right = causal}});
  }
  list.push_back({{.dim = 65,
                   .value_dim = 130,
                   .shifted = true,
                   .window_left = true,
                   .variable_length = true}});
  list.push_back(
      {{.dim = 100, .value_dim = 36, .shifted = true, .softcap = true, .dropout = true}});
  list.push_back(
      {{.dim = 129, .value_dim = 129, .shifted = true, .bias = true, .bias_per_query = true}});
}

void add_variable_lengths(List& list) {
  for (const int dim : {64, 128, 256})
    list.push_back({{.dim = dim, .value_dim = dim, .variable_length = true}});
  list.push_back({{.dim = 64, .value_dim = 64, .window_right = true, .variable_length = true}});
  list.push_back({{.window_right = true, .variable_length = true}, kLong});
  list.push_back({{.dim = 192,
                   .value_dim = 192,
                   .window_left = true,
                   .window_right = true,
                   .variable_length = true}});
}

void add_fixed_references(List& list) {
  const auto add = [&list](int dim, bool causal, long long keys) {
    list.push_back(
        {{.dim = dim, .value_dim = dim, .window_right = causal, .reference = Reference::fixed},
         keys});
  };
  for (const bool causal : {false, true}) {
    for (const int dim : {64, 128, 256}) add(dim, causal, kShort);
    for (const int dim : {64, 128}) add(dim, causal, kLong);
  }
  for (const long long keys : {kShort, kLong}) {
    list.push_back(
        {{.window_right = true, .variable_length = true, .reference = Reference::fixed}, keys});
  }
}

/// What changes logits or weights, one at a time and all together.
void add_logits(List& list) {
  for (const int dim : {64, 128, 192, 256}) {
    list.push_back({{.dim = dim, .value_dim = dim, .softcap = true}});
    list.push_back({{.dim = dim, .value_dim = dim, .window_right = true, .alibi = true}});
    for (const bool per_query : {false, true})
      list.push_back({{.dim = dim, .value_dim = dim, .bias = true, .bias_per_query = per_query}});
    list.push_back({{.dim = dim, .value_dim = dim, .window_right = true, .dropout = true}});
    HopperForwardFeatures everything{.dim = dim,
                                     .value_dim = dim,
                                     .window_left = true,
                                     .window_right = true,
                                     .variable_length = true,
                                     .softcap = true,
                                     .alibi = true,
                                     .sinks = true};
    if (dim != 128) list.push_back({everything});
    everything.bias = everything.bias_per_query = everything.dropout = true;
    list.push_back({everything});
  }
  list.push_back(
      {{.window_right = true, .variable_length = true, .softcap = true, .alibi = true}, kLong});
  list.push_back({{.positive_scale = false}});
  list.push_back({{.dim = 64, .value_dim = 64, .window_right = true, .sinks = true}});
  list.push_back({{.window_left = true, .window_right = true, .sinks = true}, kLong});
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture) {
  if (architecture.major != 9 || !architecture.specific) return {};
  List list;
  for (const auto add : {add_usual_dims, add_other_dims, add_shifted_heads, add_variable_lengths,
                         add_fixed_references, add_logits})
    add(list);
  std::vector<jit::KernelDescription> all;
  for (const auto& [features, keys] : list) {
    const Work plenty{.queries = keys, .keys = keys, .heads = 4096};
    all.push_back(description(choose_hopper_forward(features, plenty)));
  }
  all.push_back(hopper_order());
  return all;
}

}  // namespace strobe::cuda::hopper_forward
