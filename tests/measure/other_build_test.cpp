#include "measure/other_build.h"

#include <gtest/gtest.h>

#include <fstream>

#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/verify.h"

namespace strobe::lab {
namespace {

// The tests have the engine within them, so the library beside them is another build.
TEST(OtherBuild, ComputesWhateverThisOneDoes) {
  const OtherBuild other(STROBE_LIBRARY);
  const auto flash = other.implementation("flash");
  for (const char* problem : {"b2 sq40 h4 hk2 d16 bf16 causal bwd", "lq15,0,9 h2 d8 fp16 bwd",
                              "b1 sq20 sk33 h2 d24 dv8 fp32 w4:2 cap15 alibi sinks bias:hk bwd",
                              "b2 sq17 h2 d8 fp32 drop0.2 qkvpacked scale0.3"}) {
    const Report report = verify({Problem::parse(problem)}, *flash);
    EXPECT_EQ(report.status, Status::ok) << problem << ": " << report.reason;
  }
}

TEST(OtherBuild, SaysWhatIsMissingAsItselfWould) {
  const OtherBuild other(STROBE_LIBRARY);
  const auto flash = other.implementation("flash");
  EXPECT_FALSE(flash->supports(Problem::parse("s8 int8")));
  EXPECT_THROW(flash->plan(Problem::parse("s8 int8")), Unsupported);
  EXPECT_FALSE(other.implementation("nobody")->supports(Problem::parse("s8 fp32")));
}

TEST(OtherBuild, IsAGuestOfTheProgram) {
  const OtherBuild other(STROBE_LIBRARY);
  EXPECT_TRUE(other.implementation("flash")->habits().guest);
}

TEST(OtherBuild, MustBeALibstrobe) {
  const std::string path = testing::TempDir() + "strobe_other_build_test.so";
  EXPECT_THROW(OtherBuild("/no/such/libstrobe.so"), Error);
  std::ofstream(path) << "not a library";
  EXPECT_THROW(OtherBuild{path}, Error);
  EXPECT_THROW(OtherBuild("libm.so.6"), Error);
}

}  // namespace
}  // namespace strobe::lab
