// What a caller of any implementation on a GPU may rely on, whatever it computes.

#include <thread>

#include "cuda/accelerator.h"
#include "cuda/driver/graph.h"
#include "cuda/driver/stream.h"
#include "cuda/gpu.h"
#include "cuda/kernels/catalogue.h"
#include "cuda/kernels/pause/pause.h"
#include "strobe/registry.h"
#include "verify/mirror.h"
#include "verify/operands.h"

namespace strobe::cuda {
namespace {

using lab::DeviceBuffer;
using lab::Mirror;
using lab::Operands;

const Implementation& flash() {
  static const auto* const registry = [] {
    auto* made = new Registry;
    register_kernels(*made);
    return made;
  }();
  return registry->find("cuda:flash");
}

/// A problem on the device with both passes planned.
class Attempt {
 public:
  Attempt(const driver::Device& device, const char* problem,
          lab::Storage storage = lab::Storage::contiguous)
      : device_(device),
        operands_({.problem = Problem::parse(problem), .inputs = {.storage = storage}}),
        mirror_(accelerator_at(0), operands_),
        forward_(plan(Pass::forward)),
        backward_(plan(Pass::backward)),
        workspace_(accelerator_at(0),
                   std::max(forward_.workspace_bytes, backward_.workspace_bytes)) {}

  /// Both passes, on the stream.
  void run(abi::Stream stream) const {
    const driver::ContextScope scope(device_);
    for (const Plan* plan : {&forward_, &backward_}) {
      flash().run(*plan, mirror_.moved(operands_.tensors(plan->problem.pass)), workspace_.data(),
                  plan->workspace_bytes, stream);
    }
  }

  void poison() {
    for (const Pass pass : {Pass::forward, Pass::backward}) mirror_.poison_outputs(pass);
    accelerator_at(0).wait();
  }

  /// Everything that was computed, once the stream is done.
  std::vector<std::byte> results(const driver::Stream& stream) const {
    stream.synchronize();
    mirror_.download();
    std::vector<std::byte> all;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      EXPECT_EQ(operands_.unwritten(pass, operands_.tensors(pass)), "");
      for (const auto& output : operands_.outputs(pass)) {
        const auto bytes = output.buffer.payload();
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    }
    return all;
  }

 private:
  Plan plan(Pass pass) const {
    Problem problem = operands_.problem();
    problem.pass = pass;
    return flash().plan(problem, {.deterministic = true});
  }

  const driver::Device& device_;
  Operands operands_;
  Mirror mirror_;
  Plan forward_;
  Plan backward_;
  DeviceBuffer workspace_;
};

class GpuCalls : public test::OnGpuWithCompiler {
 protected:
  static bool emulated() { return device().name() == "emulated GPU"; }
};

constexpr const char* kProblem = "b2 sq40 sk50 h4 hk2 d40 bf16 causal bwd";

TEST_F(GpuCalls, GiveTheSameBitsEveryTime) {
  const int repeats = emulated() ? 2 : 1000;
  Attempt attempt(device(), emulated() ? kProblem : "b2 sq520 h8 hk2 d128 bf16 causal bwd");
  const driver::Stream stream(device());
  attempt.run(stream.get());
  const auto first = attempt.results(stream);
  for (int i = 1; i < repeats; ++i) {
    attempt.poison();
    attempt.run(stream.get());
    ASSERT_TRUE(attempt.results(stream) == first) << "run " << i;
  }
}

TEST_F(GpuCalls, CanBeCapturedInAGraph) {
  Attempt attempt(device(), kProblem);
  const driver::Stream stream(device());
  attempt.run(stream.get());
  const auto expected = attempt.results(stream);
  const auto graph =
      driver::Graph::capture(device(), stream.get(), [&] { attempt.run(stream.get()); });
  for (int i = 0; i < 2; ++i) {
    attempt.poison();
    const driver::ContextScope scope(device());
    graph.launch(stream.get());
    EXPECT_TRUE(attempt.results(stream) == expected);
  }
}

// Kernels for such operands are compiled when the first come, and drivers load none in a capture.
TEST_F(GpuCalls, CanBeTheFirstWithSuchOperandsInACapture) {
  Attempt attempt(device(), "b1 sq20 sk30 h2 d24 bf16 causal bwd", lab::Storage::sliced);
  const driver::Stream stream(device());
  attempt.poison();
  const auto graph =
      driver::Graph::capture(device(), stream.get(), [&] { attempt.run(stream.get()); });
  {
    const driver::ContextScope scope(device());
    graph.launch(stream.get());
  }
  const auto captured = attempt.results(stream);
  attempt.poison();
  attempt.run(stream.get());
  EXPECT_TRUE(attempt.results(stream) == captured);
}

TEST_F(GpuCalls, NeedAWorkspaceThatGrowsWithTheLengthAlone) {
  const auto workspace_for = [](const char* problem) {
    return flash().plan(Problem::parse(problem)).workspace_bytes;
  };
  EXPECT_LE(workspace_for("b2 sq4000 h4 hk2 d40 bf16 causal"), 1024u) << "a counter at most";
  const auto quarter = workspace_for("b2 sq1000 h4 hk2 d40 bf16 causal bwd");
  EXPECT_LE(workspace_for("b2 sq4000 h4 hk2 d40 bf16 causal bwd"), 4 * quarter);
}

TEST_F(GpuCalls, DoNotWaitForTheirStream) {
  if (emulated()) GTEST_SKIP() << "work on the emulated GPU is done when it is asked for";
  Attempt attempt(device(), kProblem);
  const driver::Stream stream(device());
  attempt.run(stream.get());
  const auto expected = attempt.results(stream);
  attempt.poison();
  const pause::Pause pause(device());
  driver::Event end(device());
  {
    const driver::ContextScope scope(device());
    pause.launch(500'000'000, stream.get());
    attempt.run(stream.get());
    end.record(stream.get());
    EXPECT_FALSE(end.reached());
  }
  EXPECT_TRUE(attempt.results(stream) == expected);
}

TEST_F(GpuCalls, OfSeveralThreadsDoNotDisturbEachOther) {
  Attempt one(device(), kProblem);
  Attempt other(device(), kProblem);
  const driver::Stream first(device());
  const driver::Stream second(device());
  one.run(first.get());
  const auto expected = one.results(first);
  one.poison();
  std::thread beside([&] { other.run(second.get()); });
  one.run(first.get());
  beside.join();
  EXPECT_TRUE(one.results(first) == expected);
  EXPECT_TRUE(other.results(second) == expected);
}

}  // namespace
}  // namespace strobe::cuda
