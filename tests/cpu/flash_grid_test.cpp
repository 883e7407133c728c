// The quick grid of the laboratory, with every instruction set this machine has.
#include <gtest/gtest.h>

#include "cpu/isa.h"
#include "strobe/registry.h"
#include "support/environment.h"
#include "verify/grid.h"
#include "verify/verify.h"

namespace strobe::cpu {
namespace {

constexpr int kShares = 4;  // of the grid, so that tests run side by side

class FlashGrid : public testing::TestWithParam<std::tuple<const Isa*, int>> {};

TEST_P(FlashGrid, IsExactByTheRule) {
  const auto [isa, share] = GetParam();
  if (!isa->runs_here()) GTEST_SKIP() << "this CPU has no " << isa->kernels->name;
  const test::ScopedVariable forced("STROBE_CPU_ISA", isa->kernels->name);
  const Implementation& flash = Registry::instance().find("flash");
  const auto cases = lab::quick_grid();
  for (std::size_t i = static_cast<std::size_t>(share); i < cases.size(); i += kShares) {
    const lab::Report report = lab::verify(cases[i], flash);
    EXPECT_EQ(report.status, lab::Status::ok) << cases[i].name() << ": " << report.reason;
  }
}

std::vector<const Isa*> all_isas() {
  std::vector<const Isa*> result;
  for (const auto& isa : isas()) result.push_back(&isa);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Isas, FlashGrid,
                         testing::Combine(testing::ValuesIn(all_isas()),
                                          testing::Range(0, kShares)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param)->kernels->name) + "_" +
                                  std::to_string(std::get<1>(given.param));
                         });

}  // namespace
}  // namespace strobe::cpu
