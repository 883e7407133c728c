#include "cuda/driver/graph.h"

namespace strobe::cuda::driver {
namespace {

void destroy(const Api& driver, abi::Graph graph) {
  driver.cuGraphDestroy.unchecked(graph);
}

}  // namespace

Graph Graph::capture(const Device& device, abi::Stream stream, const std::function<void()>& work) {
  const ContextScope scope(device);
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
  const Owned<abi::Graph, destroy> graph(device, recorded);
  abi::GraphExec exec = nullptr;
  api().cuGraphInstantiate(&exec, graph.get(), 0);
  Graph result;
  result.exec_ = {device, exec};
  return result;
}

}  // namespace strobe::cuda::driver
