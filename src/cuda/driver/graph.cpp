#include "cuda/driver/graph.h"

#include <algorithm>
#include <vector>

namespace strobe::cuda::driver {
namespace {

void destroy(const Api& driver, abi::Graph graph) {
  driver.cuGraphDestroy.unchecked(graph);
}

using OwnedGraph = Owned<abi::Graph, destroy>;

OwnedGraph record(const Device& device, abi::Stream stream, const std::function<void()>& work) {
  abi::Graph recorded = nullptr;
  // Of this thread alone: what others do meanwhile is none of the graph's business.
  api().cuStreamBeginCapture(stream, abi::CaptureMode::thread_local_);
  try {
    work();
  } catch (...) {
    api().cuStreamEndCapture.unchecked(stream, &recorded);
    if (recorded != nullptr) destroy(api(), recorded);
    throw;
  }
  api().cuStreamEndCapture(stream, &recorded);
  return {device, recorded};
}

bool is_kernel(abi::GraphNode node) {
  abi::GraphNodeType type{};
  api().cuGraphNodeGetType(node, &type);
  return type == abi::GraphNodeType::kernel;
}

}  // namespace

Graph Graph::capture(const Device& device, abi::Stream stream, const std::function<void()>& work) {
  const ContextScope scope(device);
  const OwnedGraph graph = record(device, stream, work);
  abi::GraphExec exec = nullptr;
  api().cuGraphInstantiate(&exec, graph.get(), 0);
  Graph result;
  result.exec_ = {device, exec};
  return result;
}

OutsideOfCapture::OutsideOfCapture(const Device& device) : scope_(device) {
  api().cuThreadExchangeStreamCaptureMode(&mode_);
}

OutsideOfCapture::~OutsideOfCapture() {
  api().cuThreadExchangeStreamCaptureMode.unchecked(&mode_);
}

int count_kernels(const Device& device, abi::Stream stream, const std::function<void()>& work) {
  const ContextScope scope(device);
  const OwnedGraph graph = record(device, stream, work);
  std::size_t count = 0;
  api().cuGraphGetNodes(graph.get(), nullptr, &count);
  std::vector<abi::GraphNode> nodes(count);
  if (count > 0) api().cuGraphGetNodes(graph.get(), nodes.data(), &count);
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), is_kernel));
}

}  // namespace strobe::cuda::driver
