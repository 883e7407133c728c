#include "verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strobe/registry.h"
#include "verify/buffer.h"
#include "verify/operands.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

/// The oracle with something broken: what verify() must find.
class Faulty : public Implementation {
 public:
  std::string_view name() const override { return "faulty"; }
  std::string_view summary() const override { return "wrong on purpose"; }
  Device::Kind device() const override { return Device::Kind::cpu; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }

 protected:
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem, .workspace_bytes = 128};
  }

  /// What the oracle would be asked instead.
  virtual void distort(Problem&, Tensors&) const {}
  virtual void spoil(const Tensors&, void*) const {}

  void execute(const Plan& plan, const Tensors& tensors, void* workspace, Stream) const override {
    Problem problem = plan.problem;
    Tensors views = tensors;
    distort(problem, views);
    const Implementation& oracle = Registry::instance().find("oracle");
    oracle.run(oracle.plan(problem), views, nullptr, 0);
    spoil(tensors, workspace);
  }
};

struct DropsLastKey : Faulty {
  void distort(Problem& problem, Tensors& tensors) const override {
    problem.seqlen_k = problem.keys() - 1;
    tensors.k.shape[1] = tensors.v.shape[1] = problem.keys();
    if (tensors.dk.given()) tensors.dk.shape[1] = tensors.dv.shape[1] = problem.keys();
  }
};

struct IgnoresWindow : Faulty {
  void distort(Problem& problem, Tensors&) const override { problem.window = {}; }
};

struct Nondeterministic : Faulty {
  mutable std::uint32_t runs = 0;
  void spoil(const Tensors& tensors, void*) const override {
    if (tensors.dq.given()) static_cast<std::uint32_t*>(tensors.dq.data)[5] ^= ++runs & 1;
  }
};

struct WritesBesideTheOutput : Faulty {
  void spoil(const Tensors& tensors, void*) const override {
    static_cast<float*>(tensors.out.data)[tensors.out.elements()] = 0;
  }
};

struct WritesBesideTheWorkspace : Faulty {
  void spoil(const Tensors&, void* workspace) const override {
    static_cast<float*>(workspace)[32] = 0;
  }
};

struct ChangesItsInputs : Faulty {
  void spoil(const Tensors& tensors, void*) const override {
    static_cast<float*>(tensors.q.data)[0] = 0;
  }
};

struct LeavesARowOut : Faulty {
  void spoil(const Tensors& tensors, void*) const override {
    const auto row = Rows(tensors.out)[3];
    std::fill(row.begin(), row.end(), kPoison);
  }
};

struct WrongLse : Faulty {
  void spoil(const Tensors& tensors, void*) const override {
    static_cast<float*>(tensors.lse.data)[2] += 1e-3f;
  }
};

struct SupportsNothing : Faulty {
  Support supports(const Problem&, const PlanOptions&) const override { return {{"everything"}}; }
};

struct NeedsTooMuchMemory : Faulty {
  Plan make_plan(const Problem& problem, const PlanOptions&) const override {
    return {.problem = problem, .workspace_bytes = std::size_t{1} << 60};
  }
};

const Case kForward{Problem::parse("b2 sq20 sk30 h2 d16 fp32"), {.seed = 1}};
const Case kBackward{Problem::parse("b2 sq20 sk30 h2 d16 fp32 bwd"), {.seed = 1}};

TEST(Verify, PassesTheOracleAndTheBaseline) {
  const std::vector<const Implementation*> both{&Registry::instance().find("oracle"),
                                                &Registry::instance().find("standard")};
  for (const Case& what : {kForward, kBackward}) {
    for (const Report& report : verify(what, both)) {
      EXPECT_EQ(report.status, Status::ok) << report.implementation << ": " << report.reason;
      EXPECT_EQ(report.tensors.size(), what.problem.pass == Pass::forward ? 2u : 5u);
    }
  }
}

TEST(Verify, ChecksTheGradientsOfBiasAndSinksToo) {
  const Report report = verify({Problem::parse("sq9 h2 d8 fp32 bias:hqk sinks bwd"), {}},
                               Registry::instance().find("oracle"));
  EXPECT_EQ(report.status, Status::ok) << report.reason;
  ASSERT_EQ(report.tensors.size(), 7u);
  EXPECT_EQ(report.tensors[5].tensor, "dbias");
  EXPECT_EQ(report.tensors[6].tensor, "dsinks");
}

TEST(Verify, CatchesADroppedKey) {
  const Report report = verify(kForward, DropsLastKey());
  EXPECT_EQ(report.status, Status::failed);
  EXPECT_EQ(report.reason.rfind("out: [", 0), 0u) << report.reason;
}

TEST(Verify, CatchesAnIgnoredWindow) {
  EXPECT_EQ(verify(kForward, IgnoresWindow()).status, Status::ok);
  const Case windowed{Problem::parse("b2 sq20 sk30 h2 d16 fp16 w28:"), {.seed = 1}};
  EXPECT_EQ(verify(windowed, IgnoresWindow()).status, Status::failed);
}

TEST(Verify, CatchesABitThatChangesFromRunToRun) {
  EXPECT_EQ(verify(kForward, Nondeterministic()).status, Status::ok);
  const Report report = verify(kBackward, Nondeterministic());
  EXPECT_EQ(report.status, Status::failed);
  EXPECT_EQ(report.reason, "gives a different dq when it runs again");
}

TEST(Verify, CatchesWritesOutOfBounds) {
  EXPECT_EQ(verify(kForward, WritesBesideTheOutput()).reason, "writes outside of out");
  EXPECT_EQ(verify(kForward, WritesBesideTheWorkspace()).reason,
            "writes outside of its workspace of 128 bytes (forward)");
  EXPECT_EQ(verify(kForward, ChangesItsInputs()).reason, "changes its inputs");
}

TEST(Verify, CatchesARowThatWasNotWritten) {
  const Report report = verify(kForward, LeavesARowOut());
  EXPECT_EQ(report.status, Status::failed);
  EXPECT_EQ(report.tensors[0].worst_index, "[0, 1, 1, 0]");
}

TEST(Verify, CatchesAWrongLse) {
  const Report report = verify(kForward, WrongLse());
  EXPECT_EQ(report.status, Status::failed);
  EXPECT_TRUE(report.tensors[0].comparison.pass());
  EXPECT_EQ(report.tensors[1].worst_index, "[0, 0, 2]");
}

TEST(Verify, TheLseIsNotAskedOfThoseThatGiveNone) {
  struct WithoutLse : Faulty {
    Habits habits() const override { return {.gives_lse = false}; }
    void spoil(const Tensors& tensors, void*) const override {
      EXPECT_EQ(tensors.lse.given(), tensors.dq.given());
    }
    void distort(Problem&, Tensors& tensors) const override {
      tensors.lse = lse;  // which the oracle's backward pass reads
    }
    TensorView lse{};
  };
  Operands operands({.problem = Problem::parse("b1 sq9 h2 d8 fp32 bwd")});
  WithoutLse implementation;
  implementation.lse = operands.tensors(Pass::forward).lse;
  const Report report = verify({.problem = operands.problem()}, implementation);
  EXPECT_EQ(report.status, Status::ok) << report.reason;
  for (const TensorReport& tensor : report.tensors) EXPECT_NE(tensor.tensor, "lse");
  EXPECT_EQ(report.tensors.size(), 4u);  // out, dq, dk, dv
}

TEST(Verify, WhatCannotRunIsAFindingNotAnException) {
  const Report unsupported = verify(kForward, SupportsNothing());
  EXPECT_EQ(unsupported.status, Status::unsupported);
  EXPECT_NE(unsupported.reason.find("everything"), std::string::npos);
  EXPECT_EQ(verify(kForward, NeedsTooMuchMemory()).status, Status::out_of_memory);
}

}  // namespace
}  // namespace strobe::lab
