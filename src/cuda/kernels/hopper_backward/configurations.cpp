#include "cuda/kernels/hopper_backward/finish.h"
#include "cuda/kernels/hopper_backward/hopper_backward.h"

namespace strobe::cuda::hopper_backward {
namespace {

using List = std::vector<HopperBackwardFeatures>;

HopperBackwardFeatures with_every_mask(int dim) {
  return {.dim = dim,
          .value_dim = dim,
          .window_left = true,
          .window_right = true,
          .variable_length = true};
}

void add_usual_dims(List& list) {
  for (const int dim : {64, 96, 128, 192, 256}) {
    for (const bool causal : {false, true})
      list.push_back({.dim = dim, .value_dim = dim, .window_right = causal});
    list.push_back(with_every_mask(dim));
  }
  list.push_back({.arithmetic = Arithmetic::fp16});
  list.push_back(
      {.arithmetic = Arithmetic::fp16, .dim = 64, .value_dim = 64, .window_right = true});
  for (const int dim : {64, 128, 256})
    list.push_back({.dim = dim, .value_dim = dim, .variable_length = true});
}

/// Those that are no multiple of 32, values of another dim than keys, and heads that begin within
/// chunks of 16 bytes.
void add_other_dims(List& list) {
  list.push_back({.dim = 40, .value_dim = 40, .window_right = true});
  list.push_back({.dim = 192, .value_dim = 128, .window_right = true});
  list.push_back({.dim = 64, .value_dim = 256});
  list.push_back({.dim = 128, .value_dim = 64});
  for (const bool causal : {false, true}) {
    list.push_back({.dim = 129, .value_dim = 129, .window_right = causal});
    list.push_back({.dim = 129, .value_dim = 129, .shifted = true, .window_right = causal});
  }
  list.push_back({.dim = 129, .value_dim = 129, .window_left = true, .variable_length = true});
  list.push_back(
      {.dim = 100, .value_dim = 52, .shifted = true, .window_right = true, .deterministic = true});
  list.push_back({.dim = 249, .value_dim = 33, .shifted = true, .softcap = true, .dropout = true});
}

void add_deterministic(List& list) {
  list.push_back({.dim = 64, .value_dim = 64, .window_right = true, .deterministic = true});
  list.push_back({.window_right = true, .deterministic = true});
  list.push_back({.dim = 256, .value_dim = 256, .deterministic = true});
  for (const int dim : {64, 128, 256}) {
    list.push_back({.dim = dim,
                    .value_dim = dim,
                    .window_right = true,
                    .variable_length = true,
                    .deterministic = true});
    list.push_back(
        {.dim = dim, .value_dim = dim, .window_left = true, .alibi = true, .deterministic = true});
  }
}

/// What changes logits or weights, one at a time and all together.
void add_logits(List& list) {
  for (const int dim : {64, 96, 128, 192, 256}) {
    list.push_back({.dim = dim, .value_dim = dim, .window_right = true, .softcap = true});
    list.push_back({.dim = dim, .value_dim = dim, .window_right = true, .dropout = true});
  }
  list.push_back({.dropout = true});
  for (const int dim : {64, 128, 192, 256}) {
    for (const bool per_query : {false, true})
      list.push_back({.dim = dim,
                      .value_dim = dim,
                      .window_right = per_query,
                      .bias = true,
                      .bias_per_query = per_query});
    HopperBackwardFeatures everything = with_every_mask(dim);
    everything.softcap = everything.alibi = everything.dropout = true;
    if (dim != 192) list.push_back(everything);
    everything.bias = everything.bias_per_query = everything.deterministic = true;
    list.push_back(everything);
  }
}

}  // namespace

std::vector<jit::KernelDescription> configurations(const jit::Architecture& architecture) {
  if (architecture.major != 9 || !architecture.specific) return {};
  List list;
  for (const auto add : {add_usual_dims, add_other_dims, add_deterministic, add_logits}) add(list);
  for (HopperBackwardFeatures& features : list) features.finishes = may_finish(features);
  for (const int dim : {64, 128}) {  // long sequences, whose gradients of queries are divided later
    for (const bool causal : {false, true})
      list.push_back({.dim = dim, .value_dim = dim, .window_right = causal});
  }
  std::vector<jit::KernelDescription> all;
  for (const HopperBackwardFeatures& features : list)
    all.push_back(description(choose_hopper_backward(features)));
  HopperBackwardConfig adds_itself = choose_hopper_backward({.window_right = true});
  adds_itself.shape.slice_slots = 0;
  all.push_back(description(adds_itself));
  for (const HopperBackwardFeatures& features :
       {HopperBackwardFeatures{}, {.dim = 129, .value_dim = 129, .shifted = true}}) {
    const PortableBackwardFeatures rows{.dim = features.dim, .value_dim = features.value_dim};
    all.push_back(finish_description(
        choose_portable_backward(BackwardKernel::key_gradients, rows, architecture.number()),
        choose_hopper_backward(features)));
  }
  return all;
}

}  // namespace strobe::cuda::hopper_backward
