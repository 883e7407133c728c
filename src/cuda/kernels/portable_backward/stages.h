#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/jit/architecture.h"
#include "cuda/jit/loaded_kernel.h"
#include "cuda/kernels/operands.h"
#include "cuda/kernels/portable_backward/config.h"
#include "cuda/kernels/portable_backward/params.cuh"
#include "cuda/workspace.h"
#include "strobe/implementation.h"

// What a backward pass is made of, also one whose main kernel is another.
namespace strobe::cuda::portable_backward {

PortableBackwardFeatures features_of(const Problem& problem, const PlanOptions& options);

/// All but what is in the workspace.
PortableBackwardParams params_of(const Problem& problem, const Tensors& tensors);

/// Where arrays lie in the workspace.
struct WorkspaceArrays {
  std::size_t statistics = 0;
  std::size_t corrections = 0;  ///< with exact fp32
  std::size_t dq_sums = 0;      ///< unless deterministic
  std::int64_t dq_sum_floats = 0;

  void set(PortableBackwardParams& params, std::byte* workspace) const;
};

WorkspaceArrays plan_arrays(const Problem& problem, const PortableBackwardFeatures& features,
                            WorkspacePlan& workspace);

inline std::int64_t blocks_of(std::int64_t length, int block) {
  return (length + block - 1) / block;
}

/// A source with its configuration, compiled and loaded.
struct Kernel {
  PortableBackwardConfig config{};
  std::shared_ptr<const jit::LoadedKernel> kernel{};

  driver::Function function(const char* entry) const { return kernel->function(entry); }

  /// Kernels that go over rows alone.
  void launch_by_rows(const char* entry, const Problem& problem,
                      const PortableBackwardParams& params, abi::Stream stream) const;
  /// Kernels whose blocks own queries.
  void launch_by_queries(const char* entry, const Problem& problem, PortableBackwardParams params,
                         abi::Stream stream) const;
  /// A grid of so many blocks along x and y.
  void launch(const char* entry, std::int64_t x, std::int64_t y, int shared,
              const PortableBackwardParams& params, abi::Stream stream) const;
};

Kernel load(const driver::Device& device, BackwardKernel kernel,
            const PortableBackwardFeatures& features, const char* source,
            std::vector<std::string> entries);

/// What is needed of each query before any gradient can be computed; see RowStatistics. Also clears
/// the sums of dq.
class Statistics {
 public:
  Statistics() = default;
  Statistics(const driver::Device& device, const Problem& problem,
             const PortableBackwardFeatures& features);

  void compute(const Problem& problem, const PortableBackwardParams& params,
               abi::Stream stream) const;

  /// rows.cu, which has other entries as well.
  const Kernel& rows() const { return rows_; }

 private:
  Kernel rows_{};
  Kernel of_short_rows_{};  ///< if there may be some
};

/// The gradients of a bias.
class BiasGradients {
 public:
  BiasGradients() = default;
  BiasGradients(const driver::Device& device, const PortableBackwardFeatures& features);

  /// From the statistics of queries.
  void compute(const Problem& problem, PortableBackwardParams params, abi::Stream stream) const;

 private:
  Kernel kernel_{};
};

}  // namespace strobe::cuda::portable_backward
