#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strobe/attention.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "support/tensors.h"

namespace strobe {
namespace {

/// Spoils the operands of a valid call and expects the named tensor to be blamed.
void expect_blamed(const Problem& problem, const char* field,
                   const std::function<void(Tensors&)>& spoil) {
  test::Operands operands = test::make_operands(problem, 1);
  Tensors tensors = operands.views();
  ASSERT_NO_THROW(validate(problem, tensors, {})) << problem.text();
  spoil(tensors);
  try {
    validate(problem, tensors, {});
    ADD_FAILURE() << field << " was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), field) << error.what();
  }
}

const char* const kForward = "b2 sq4 sk6 h2 hk1 d8 fp32 sinks alibi bias:bhqk";
const char* const kBackward = "b2 sq4 sk6 h2 hk1 d8 fp32 sinks bias:bhqk bwd";
const char* const kVarlen = "lq4,0,3 lk5,2,1 h2 d8 fp32 bwd";

TEST(ValidateTensors, WrongForwardOperands) {
  const Problem problem = Problem::parse(kForward);
  expect_blamed(problem, "q", [](Tensors& t) { t.q.data = nullptr; });
  expect_blamed(problem, "q", [](Tensors& t) { t.q.shape[1] = 5; });
  expect_blamed(problem, "k", [](Tensors& t) { t.k.dtype = DType::bf16; });
  expect_blamed(problem, "k", [](Tensors& t) { t.k.rank = 3; });
  expect_blamed(problem, "v", [](Tensors& t) { t.v.strides[3] = 2; });
  expect_blamed(problem, "v", [](Tensors& t) { t.v.device.kind = Device::Kind::cuda; });
  expect_blamed(problem, "v", [](Tensors& t) { t.v.data = static_cast<char*>(t.v.data) + 1; });
  expect_blamed(problem, "v", [](Tensors& t) { t.v.strides[0] = std::int64_t{1} << 62; });
  expect_blamed(problem, "out", [](Tensors& t) { t.out = {}; });
  expect_blamed(problem, "out", [](Tensors& t) { t.out.data = t.q.data; });
  expect_blamed(problem, "out", [](Tensors& t) { t.out.data = t.q.data, t.out.device.index = 1; });
  expect_blamed(problem, "out", [](Tensors& t) { t.out.strides[0] = 0; });
  expect_blamed(problem, "lse", [](Tensors& t) { t.lse.shape[2] = 3; });
  expect_blamed(problem, "lse", [](Tensors& t) { t.lse.strides[1] = 3; });
  expect_blamed(problem, "out", [](Tensors& t) { t.lse.data = t.out.data; });
  expect_blamed(problem, "bias", [](Tensors& t) { t.bias = {}; });
  expect_blamed(problem, "sinks", [](Tensors& t) { t.sinks.shape[0] = 3; });
  expect_blamed(problem, "alibi_slopes", [](Tensors& t) { t.alibi_slopes.dtype = DType::bf16; });
}

TEST(ValidateTensors, WrongBackwardOperands) {
  const Problem problem = Problem::parse(kBackward);
  expect_blamed(problem, "lse", [](Tensors& t) { t.lse = {}; });
  expect_blamed(problem, "dout", [](Tensors& t) { t.dout = {}; });
  expect_blamed(problem, "dq", [](Tensors& t) { t.dq.data = t.dk.data; });
  expect_blamed(problem, "dv", [](Tensors& t) { t.dv.strides[1] = 0; });
  expect_blamed(problem, "dbias", [](Tensors& t) { t.dbias.shape[0] = 1; });
  expect_blamed(problem, "dsinks", [](Tensors& t) { t.dsinks.data = t.sinks.data; });
  expect_blamed(Problem::parse("s4 d8 fp32 bwd"), "dbias", [](Tensors& t) { t.dbias = t.dout; });
}

TEST(ValidateTensors, EveryTensorIsOnTheDeviceOfThePlan) {
  constexpr Device kPlanned{Device::Kind::cuda, 1};
  const Problem problem = Problem::parse(kForward);
  test::Operands operands = test::make_operands(problem, 1);
  Tensors tensors = operands.views();
  for (TensorView* view : {&tensors.q, &tensors.k, &tensors.v, &tensors.out, &tensors.lse,
                           &tensors.bias, &tensors.sinks, &tensors.alibi_slopes})
    view->device = kPlanned;
  EXPECT_NO_THROW(validate(problem, tensors, kPlanned));
  tensors.k.device.index = 0;
  try {
    validate(problem, tensors, kPlanned);
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), "k");
    EXPECT_NE(std::string(error.what()).find("is on cuda:0, the plan was made for cuda:1"),
              std::string::npos)
        << error.what();
  }
}

TEST(ValidateTensors, WrongSequenceOffsets) {
  const Problem problem = Problem::parse(kVarlen);
  const auto offset = [](TensorView& view, int index, std::int32_t value) {
    static_cast<std::int32_t*>(view.data)[index] = value;
  };
  expect_blamed(problem, "cu_seqlens_q", [&](Tensors& t) { offset(t.cu_seqlens_q, 0, 1); });
  expect_blamed(problem, "cu_seqlens_q", [&](Tensors& t) { offset(t.cu_seqlens_q, 1, 8); });
  expect_blamed(problem, "cu_seqlens_q", [&](Tensors& t) { offset(t.cu_seqlens_q, 3, 8); });
  expect_blamed(problem, "cu_seqlens_k", [&](Tensors& t) { offset(t.cu_seqlens_k, 2, 3); });
  expect_blamed(problem, "cu_seqlens_k", [&](Tensors& t) { offset(t.cu_seqlens_k, 2, -3); });
  expect_blamed(problem, "cu_seqlens_k", [](Tensors& t) { t.cu_seqlens_k = {}; });
  expect_blamed(problem, "q", [](Tensors& t) { t.q.shape[0] = 8; });
}

TEST(ValidateTensors, ShorterLengthsWithinTheTotalsAreFine) {
  const Problem problem = Problem::parse(kVarlen);
  test::Operands operands = test::make_operands(problem, 1);
  Tensors tensors = operands.views();
  static_cast<std::int32_t*>(tensors.cu_seqlens_q.data)[3] = 5;
  EXPECT_NO_THROW(validate(problem, tensors, {}));
}

TEST(Implementation, PlanAndRunCheckTheirArguments) {
  const Implementation& flash = Registry::instance().find("flash");
  EXPECT_THROW(flash.plan({.seqlen_q = -1}), InvalidArgument);
  EXPECT_THROW(flash.plan({.seqlen_q = 1, .dtype = DType::int8}), Unsupported);
  EXPECT_THROW(flash.plan({.seqlen_q = 1}, {.threads = -1}), InvalidArgument);
  const Problem problem = Problem::parse("s4 d8 fp32");
  test::Operands operands = test::make_operands(problem, 1);
  const Plan plan = flash.plan(problem);
  std::vector<std::byte> memory(plan.workspace_bytes + 128);
  auto* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  EXPECT_THROW(flash.run(plan, operands.views(), aligned, plan.workspace_bytes - 1),
               InvalidArgument);
  EXPECT_THROW(flash.run(plan, operands.views(), aligned + 1, plan.workspace_bytes),
               InvalidArgument);
  EXPECT_THROW(flash.run(plan, operands.views(), nullptr, plan.workspace_bytes), InvalidArgument);
  EXPECT_NO_THROW(flash.run(plan, operands.views(), aligned, plan.workspace_bytes));
}

TEST(Registry, FindsAndRefuses) {
  const Registry& registry = Registry::instance();
  EXPECT_EQ(registry.best(Problem::parse("s4")).name(), "flash");
  EXPECT_EQ(registry.all().front()->name(), "flash");
  try {
    registry.find("flush");
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("flash, standard, oracle"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(registry.best(Problem::parse("s4 int8")), Unsupported);
  EXPECT_THROW(registry.best(Problem::parse("s4"), {.kind = Device::Kind::cuda}), Unsupported);
}

/// Takes everything, and returns what it computes in memory of its own.
class Visitor final : public Implementation {
 public:
  std::string_view name() const override { return "visitor"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }
  Habits habits() const override { return {.guest = true, .gives_lse = false}; }
  void deliver(const Plan&, const Tensors&, Stream) const override { done += "d"; }
  mutable std::string done{};

 private:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem};
  }
  void execute(const Plan&, const Tensors&, void*, Stream) const override { done += "c"; }
};

TEST(Registry, NeverChoosesAGuest) {
  Registry registry;
  registry.add(std::make_unique<Visitor>());
  EXPECT_EQ(registry.find("visitor").name(), "visitor");
  EXPECT_THROW(registry.best(Problem::parse("s4")), Unsupported);
}

TEST(Implementation, ARunIsComputedAndDelivered) {
  const Problem problem = Problem::parse("s4 d8 fp32");
  test::Operands operands = test::make_operands(problem, 1);
  const Visitor visitor;
  const Plan plan = visitor.plan(problem);
  Tensors tensors = operands.views();
  EXPECT_THROW(visitor.run(plan, tensors, nullptr, 0), Unsupported);  // the LSE
  tensors.lse = {};
  visitor.run(plan, tensors, nullptr, 0);
  visitor.compute(plan, tensors, nullptr, 0);
  EXPECT_EQ(visitor.done, "cdc");
}

TEST(Attention, PlansOnceAndServesMany) {
  const Problem problem = Problem::parse("b2 s9 h2 d8 fp32 causal");
  Attention attention(problem);
  Attention by_name(problem, {.implementation = "standard"});
  EXPECT_EQ(attention.implementation().name(), "flash");
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    test::Operands a = test::make_operands(problem, seed);
    test::Operands b = test::make_operands(problem, seed);
    attention(a.views());
    by_name(b.views());
    for (std::int64_t i = 0; i < a.out.size(); ++i) EXPECT_NEAR(a.out[i], b.out[i], 1e-5);
  }
  EXPECT_THROW(Attention(problem, {.implementation = "none"}), InvalidArgument);
}

/// Gives every axis without a second element a stride that nothing could be multiplied by.
void spoil_unused_strides(Tensors& tensors) {
  std::int64_t stride = INT64_MAX;
  for (TensorView* view : {&tensors.q, &tensors.k, &tensors.v, &tensors.out, &tensors.lse,
                           &tensors.bias, &tensors.sinks, &tensors.alibi_slopes, &tensors.dout,
                           &tensors.dq, &tensors.dk, &tensors.dv, &tensors.dbias}) {
    for (int axis = 0; axis < view->rank; ++axis) {
      if (view->shape[axis] <= 1) view->strides[axis] = std::exchange(stride, ~stride);
    }
  }
}

/// Gives what a problem without features has no use for a size that nothing can have, in a place
/// that is written.
void spoil_unused_tensors(const Problem& problem, Tensors& tensors) {
  std::vector<TensorView*> unused{&tensors.bias, &tensors.sinks, &tensors.alibi_slopes,
                                  &tensors.cu_seqlens_q, &tensors.cu_seqlens_k};
  if (problem.pass == Pass::forward)
    unused.insert(unused.end(), {&tensors.dout, &tensors.dq, &tensors.dk, &tensors.dv,
                                 &tensors.dbias, &tensors.dsinks});
  for (TensorView* view : unused) {
    *view = tensors.out;
    view->shape = {INT64_MIN, INT64_MIN, INT64_MAX, INT64_MIN, 1};
    view->strides = {INT64_MIN, INT64_MAX, INT64_MIN, -1, 0};
    view->rank = INT_MAX;
  }
}

void expect_same_bits(const test::Tensor& a, const test::Tensor& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << what << ", " << i;
}

TEST(Attention, TensorsThatTheProblemDoesNotUseMayBeAnything) {
  const Problem forward = Problem::parse("b2 sq3 sk5 h2 d8 fp32");
  Problem backward = forward;
  backward.pass = Pass::backward;
  for (const char* name : {"flash", "standard", "oracle"}) {
    SCOPED_TRACE(name);
    const Implementation& implementation = Registry::instance().find(name);
    test::Operands expected = test::make_operands(backward, 1);
    test::Operands ours = test::make_operands(backward, 1);
    for (const Problem& problem : {forward, backward}) {
      Tensors tensors = ours.views();
      spoil_unused_tensors(problem, tensors);
      test::run(implementation, problem, expected.views());
      test::run(implementation, problem, tensors);
    }
    expect_same_bits(ours.out, expected.out, "out");
    expect_same_bits(ours.dq, expected.dq, "dq");
  }
}

TEST(Attention, StridesThatAreNeverSteppedByMayBeAnything) {
  for (const char* text : {"b1 s1 h1 d8 bf16 bias:hqk alibi sinks", "b2 sq3 sk1 h1 d1 fp32",
                           "b1 sq5 sk0 h2 d8 fp16", "lq1 lk1 h1 d4 fp16"}) {
    const Problem forward = Problem::parse(text);
    Problem backward = forward;
    backward.pass = Pass::backward;
    for (const char* name : {"flash", "standard", "oracle"}) {
      SCOPED_TRACE(std::string(name) + " on " + text);
      const Implementation& implementation = Registry::instance().find(name);
      test::Operands expected = test::make_operands(backward, 1);
      test::Operands ours = test::make_operands(backward, 1);
      Tensors tensors = ours.views();
      spoil_unused_strides(tensors);
      for (const Problem& problem : {forward, backward}) {
        test::run(implementation, problem, expected.views());
        test::run(implementation, problem, tensors);
      }
      expect_same_bits(ours.out, expected.out, "out");
      expect_same_bits(ours.dq, expected.dq, "dq");
      expect_same_bits(ours.dk, expected.dk, "dk");
      expect_same_bits(ours.dv, expected.dv, "dv");
    }
  }
}

TEST(TrainingAttention, KeepsWhatTheBackwardPassNeeds) {
  for (const char* text : {"b2 s9 h2 hk1 d8 fp32 causal", "lq5,0,7 lk4,1,9 h2 d8 bf16"}) {
    const Problem problem = Problem::parse(text);
    Problem backward = problem;
    backward.pass = Pass::backward;
    TrainingAttention training(problem);
    EXPECT_EQ(training.forward_plan().problem.pass, Pass::forward);
    EXPECT_EQ(training.backward_plan().problem, backward);
    EXPECT_GE(training.workspace_bytes(), training.forward_plan().workspace_bytes);
    EXPECT_GE(training.workspace_bytes(), training.backward_plan().workspace_bytes);
    const Implementation& flash = training.implementation();
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      test::Operands expected = test::make_operands(backward, seed);
      test::run(flash, problem, expected.views());
      test::run(flash, backward, expected.views());
      test::Operands ours = test::make_operands(backward, seed);
      Tensors tensors = ours.views();
      tensors.lse = {};
      training.forward(tensors);
      training.backward(tensors);
      expect_same_bits(ours.out, expected.out, "out");
      expect_same_bits(ours.dq, expected.dq, "dq");
      expect_same_bits(ours.dk, expected.dk, "dk");
      expect_same_bits(ours.dv, expected.dv, "dv");
      training.forward(ours.views());
      expect_same_bits(ours.lse, expected.lse, "an LSE that is given a place");
    }
  }
}

Tensors without_lse(test::Operands& operands) {
  Tensors tensors = operands.views();
  tensors.lse = {};
  return tensors;
}

TEST(TrainingAttention, APlanServesFewerRowsThanItWasMadeFor) {
  TrainingAttention training(Problem::parse("sq9 sk9 lq9,9 lk9,9 h2 d8 fp32"));
  const Problem shorter = Problem::parse("sq9 sk9 lq4,7 lk9,2 h2 d8 fp32 bwd");
  test::Operands expected = test::make_operands(shorter, 1);
  TrainingAttention exact(shorter);
  exact.forward(without_lse(expected));
  exact.backward(without_lse(expected));
  test::Operands ours = test::make_operands(shorter, 1);
  training.forward(without_lse(ours));
  training.backward(without_lse(ours));
  expect_same_bits(ours.out, expected.out, "out");
  expect_same_bits(ours.dq, expected.dq, "dq");
  expect_same_bits(ours.dk, expected.dk, "dk");
  expect_same_bits(ours.dv, expected.dv, "dv");
}

TEST(TrainingAttention, MoreRowsThanItWasMadeForAreBlamedOnTheQueries) {
  TrainingAttention training(Problem::parse("sq9 sk9 lq4,7 lk9,2 h2 d8 fp32"));
  test::Operands longer = test::make_operands(Problem::parse("lq9,9 lk9,2 h2 d8 fp32"), 1);
  try {
    training.forward(without_lse(longer));
    ADD_FAILURE() << "18 rows were accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), "q") << error.what();
  }
}

TEST(TrainingAttention, NoRowsAreFine) {
  const Problem problem = Problem::parse("b0 s9 h2 d8 fp32");
  TrainingAttention training(problem);
  test::Operands operands = test::make_operands(problem, 1);
  Tensors tensors = operands.views();
  tensors.lse = {};
  EXPECT_NO_THROW(training.forward(tensors));
  EXPECT_THROW(TrainingAttention(problem, {.implementation = "none"}), InvalidArgument);
}

}  // namespace
}  // namespace strobe
