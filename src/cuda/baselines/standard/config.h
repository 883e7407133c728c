#pragma once
// How the row kernels are compiled for a problem.

#include "cuda/jit/kernel_description.h"
#include "strobe/problem.h"

namespace strobe::cuda::standard {

/// What they compute. Everything that is off costs nothing.
struct RowFeatures {
  DType dtype = DType::bf16;
  bool window_left = false;
  bool window_right = false;  ///< also if causal
  bool softcap = false;
  bool alibi = false;
  bool bias = false;
  bool sinks = false;
  bool dropout = false;
  bool long_rows = true;
};

inline constexpr int kThreads = 256;

inline RowFeatures features_of(const Problem& problem) {
  constexpr std::int64_t kLongest = 1024;  // that a warp reads in a few steps
  const Window window = problem.effective_window();
  return {.dtype = problem.dtype,
          .window_left = window.left >= 0,
          .window_right = window.right >= 0,
          .softcap = problem.softcap > 0,
          .alibi = problem.alibi,
          .bias = problem.bias.has_value(),
          .sinks = problem.sinks,
          .dropout = problem.dropout > 0,
          .long_rows = problem.keys() > kLongest};
}

/// Short rows have a warp each, long ones a thread block.
constexpr int threads_of_row(const RowFeatures& features) {
  return features.long_rows ? kThreads : 32;
}

inline jit::TypeName element_of(DType dtype) {
  const char* name = dtype == DType::bf16   ? "strobe::cuda::Bf16"
                     : dtype == DType::fp16 ? "strobe::cuda::Fp16"
                                            : "strobe::cuda::Fp32";
  return {name, "device/element.cuh"};
}

/// A source of this folder with the choices as it knows them.
inline jit::KernelDescription description(const RowFeatures& features, const std::string& source,
                                          std::vector<std::string> entries) {
  return {.name = "standard/" + source,
          .source = "baselines/standard/" + source + ".cu",
          .entries = std::move(entries),
          .constants = {{"Element", element_of(features.dtype)},
                        {"kWindowLeft", features.window_left},
                        {"kWindowRight", features.window_right},
                        {"kSoftcap", features.softcap},
                        {"kAlibi", features.alibi},
                        {"kBias", features.bias},
                        {"kSinks", features.sinks},
                        {"kDropout", features.dropout},
                        {"kThreadsOfRow", threads_of_row(features)}},
          .threads = kThreads,
          .max_registers = 128};
}

inline jit::KernelDescription softmax_description(const RowFeatures& features) {
  return description(features, "softmax", {"softmax_rows"});
}

inline jit::KernelDescription gradients_description(const RowFeatures& features) {
  return description(
      features, "gradients",
      {"softmax_gradient_rows", "softcap_gradient_rows", "bias_gradients", "sink_gradients"});
}

}  // namespace strobe::cuda::standard
