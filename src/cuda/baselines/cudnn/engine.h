#pragma once

#include <string_view>

#include "cuda/baselines/cudnn/graph.h"

namespace strobe::cuda::cudnn {

/// Where plans are made for: the device of a handle, or one that is not here, by its properties.
struct Target {
  abi::Handle handle = nullptr;
  const Descriptor* device = nullptr;
};

/// The properties of a device as cuDNN writes them, in JSON.
Descriptor device_properties(const Library& library, std::string_view json);

/// A graph with the kernels that compute it.
class Engine {
 public:
  /// The first that cuDNN recommends and that can be had, compiled. Throws Unsupported with what
  /// cuDNN says if there is none.
  Engine(const Library& library, Graph graph, const Target& target);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// cuDNN's number of it.
  std::int64_t index() const { return index_; }

  /// `ids` and `pointers` are those of the graph's operands. On the stream of the handle.
  void execute(abi::Handle handle, std::vector<std::int64_t> ids, std::vector<void*> pointers,
               void* workspace) const;

 private:
  /// Turns a configuration into a plan. Throws Error if that cannot be done.
  void take(const Target& target, Descriptor config);

  const Library& library_;
  Graph graph_;
  std::vector<Descriptor> kept_{};  ///< the configuration, its engine, and the plan last
  std::size_t workspace_bytes_ = 0;
  std::int64_t index_ = 0;
};

}  // namespace strobe::cuda::cudnn
