#include "cuda/baselines/cudnn/engine.h"

#include <string>
#include <utility>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe::cuda::cudnn {
namespace {

using abi::Attribute;
using abi::DescriptorKind;

/// What cuDNN recommends for a graph, the best first.
std::vector<Descriptor> recommended(const Library& library, abi::Descriptor graph,
                                    const Target& target, abi::HeuristicsMode mode) {
  Descriptor heuristics(library, DescriptorKind::heuristics);
  heuristics.set(Attribute::heuristics_graph, graph);
  heuristics.set(Attribute::heuristics_mode, mode);
  if (target.device != nullptr) heuristics.set(Attribute::heuristics_device, *target.device);
  heuristics.finalize();
  return heuristics.descriptors(Attribute::heuristics_results, DescriptorKind::engine_config);
}

}  // namespace

Descriptor device_properties(const Library& library, std::string_view json) {
  Descriptor properties(library, DescriptorKind::device_properties);
  properties.set(Attribute::device_json, std::span<const char>(json));
  properties.finalize();
  return properties;
}

Engine::Engine(const Library& library, Graph graph, const Target& target)
    : library_(library), graph_(std::move(graph)) {
  const abi::Descriptor operations = graph_.finalize(target.handle);
  std::string trouble;  // that of the best recommendation
  const auto note = [&](const Error& error) {
    if (trouble.empty()) trouble = error.what();
  };
  for (const auto mode : {abi::HeuristicsMode::a, abi::HeuristicsMode::fallback}) {
    try {
      for (Descriptor& config : recommended(library, operations, target, mode)) {
        try {
          take(target, std::move(config));
          return;
        } catch (const Error& error) {
          note(error);
        }
      }
    } catch (const Error& error) {
      note(error);
    }
  }
  if (trouble.empty()) trouble = concat("a kernel of cuDNN's for this problem", last_message());
  throw Unsupported("cudnn", {trouble});
}

void Engine::take(const Target& target, Descriptor config) {
  Descriptor plan(library_, DescriptorKind::execution_plan);
  if (target.handle != nullptr) plan.set(Attribute::plan_handle, target.handle);
  if (target.device != nullptr) plan.set(Attribute::plan_device, *target.device);
  plan.set(Attribute::plan_engine_config, config);
  plan.finalize();
  auto engines = config.descriptors(Attribute::engine_config_engine, DescriptorKind::engine);
  workspace_bytes_ = static_cast<std::size_t>(plan.number(Attribute::plan_workspace_size));
  index_ = engines.at(0).number(Attribute::engine_global_index);
  for (Descriptor& one : engines) kept_.push_back(std::move(one));
  kept_.push_back(std::move(config));
  kept_.push_back(std::move(plan));
}

void Engine::execute(abi::Handle handle, std::vector<std::int64_t> ids, std::vector<void*> pointers,
                     void* workspace) const {
  for (const Graph::Constant& constant : graph_.constants()) {
    ids.push_back(constant.id);
    pointers.push_back(const_cast<char*>(constant.bytes.data()));
  }
  const Descriptor pack(library_, DescriptorKind::variant_pack);
  pack.set(Attribute::variant_ids, std::span<const std::int64_t>(ids));
  pack.set(Attribute::variant_pointers, std::span<void* const>(pointers));
  pack.set(Attribute::variant_workspace, workspace);
  pack.finalize();
  library_.cudnnBackendExecute(handle, kept_.back().get(), pack.get());
}

}  // namespace strobe::cuda::cudnn
