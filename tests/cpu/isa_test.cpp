#include "cpu/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "strobe/error.h"
#include "strobe/machine.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "support/tuning.h"

namespace strobe::cpu {
namespace {

std::string planned_isa() {
  return test::tuning_of(Registry::instance().find("flash").plan({.seqlen_q = 8}), "isa");
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

std::vector<std::string> names_of_multiply_adds(DType dtype) {
  std::vector<std::string> names;
  for (const MultiplyAdd& each : multiply_adds()) {
    if (each.dtype == dtype) names.emplace_back(each.name);
  }
  return names;
}

TEST(MultiplyAdds, EachThatIsHereCanBeMeasured) {
  for (const MultiplyAdd& each : multiply_adds()) {
    const double rate = measure_multiply_add(each, 1);
    EXPECT_GT(rate, 1e6) << each.name << " " << name_of(each.dtype);
    EXPECT_LT(rate, 1e14) << each.name << " " << name_of(each.dtype);
  }
  // fp32 by the vector units, and where there is AMX by bf16 terms as well.
  if (machine().isas.front() == "amx") {
    EXPECT_EQ(names_of_multiply_adds(DType::fp32), (std::vector<std::string>{"avx512", "amx"}));
  } else {
    EXPECT_EQ(names_of_multiply_adds(DType::fp32).size(), 1u);
  }
  EXPECT_EQ(names_of_multiply_adds(DType::int8).back(), "scalar");
}

TEST(MultiplyAdds, GoWithTheKernelsInUse) {
  const std::size_t all = multiply_adds().size();
  {
    const test::ScopedVariable forced("STROBE_CPU_ISA", "scalar");
    EXPECT_EQ(names_of_multiply_adds(DType::fp32), std::vector<std::string>{"scalar"});
    EXPECT_EQ(names_of_multiply_adds(DType::bf16), std::vector<std::string>{});
    EXPECT_EQ(names_of_multiply_adds(DType::int8), std::vector<std::string>{"scalar"});
    EXPECT_THROW(measure_multiply_add({"amx", DType::int8}, 1), InvalidArgument);
  }
  EXPECT_EQ(multiply_adds().size(), all);
  EXPECT_THROW(measure_multiply_add({"abacus", DType::fp32}, 1), InvalidArgument);
}

TEST(Isa, TheMeasuredRatesAreFiniteOnes) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::int8}) {
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
