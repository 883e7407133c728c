#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "strobe/error.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "support/environment.h"

namespace strobe::cpu {
namespace {

std::string planned_isa() {
  const Plan plan = Registry::instance().find("flash").plan({.seqlen_q = 8});
  const auto found = std::find_if(plan.tuning.begin(), plan.tuning.end(),
                                  [](const auto& entry) { return entry.first == "isa"; });
  return found == plan.tuning.end() ? "" : found->second;
}

TEST(Isa, TheForcedOneIsPlanned) {
  for (const auto& isa : isas()) {
    const test::ScopedVariable forced("STROBE_CPU_ISA", isa.kernels->name);
    if (!isa.runs_here()) {
      EXPECT_THROW(active_isa(), Unsupported) << isa.kernels->name;
      continue;
    }
    EXPECT_EQ(planned_isa(), isa.kernels->name);
    EXPECT_EQ(machine().isa, isa.kernels->name);
  }
}

TEST(Isa, WithoutAWishTheBestIsTaken) {
  const test::ScopedVariable none("STROBE_CPU_ISA", "");
  EXPECT_EQ(planned_isa(), machine().isas.front());
}

TEST(Isa, AnUnknownNameListsTheKnownOnes) {
  const test::ScopedVariable wrong("STROBE_CPU_ISA", "mmx");
  try {
    active_isa();
    ADD_FAILURE();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.field(), "STROBE_CPU_ISA");
    EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos);
  }
}

TEST(Isa, TheMeasuredRatesAreFiniteOnes) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    const double rate = measure_fma_rate(dtype, 1);
    EXPECT_GT(rate, 1e7) << name_of(dtype);
    EXPECT_LT(rate, 1e14) << name_of(dtype);
  }
  const double copy = measure_copy_rate(1 << 20, 1);
  EXPECT_GT(copy, 1e6);
  EXPECT_LT(copy, 1e13);
}

}  // namespace
}  // namespace strobe::cpu
