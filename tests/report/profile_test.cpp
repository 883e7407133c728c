#include "report/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/findings.h"
#include "report/roofline_svg.h"

namespace strobe::lab {
namespace {

Peaks peaks(double fp32, double bf16) {
  return {.threads = 2,
          .flops_per_second = {{DType::fp32, fp32}, {DType::bf16, bf16}},
          .copy = {{16'384, 4e11}, {1 << 26, 1e11}}};
}

/// A pass that reaches this part of a peak of 1 TFLOP/s.
PassProfile pass_at(double part) {
  PassProfile pass;
  pass.result.problem = Problem::parse("b2 s1024 h8 d64 fp32");
  pass.result.implementation = "flash";
  pass.result.flops = 1e9;
  pass.result.measurement.samples_ms = {1 / part};
  pass.result.measurement.ms = {.median = 1 / part, .ci95 = Interval{1 / part, 1 / part}};
  pass.result.memory = {.inputs = 3'000'000, .outputs = 1'000'000};
  pass.roof = {.peak_flops = 1e12, .bytes_per_second = 1e11, .intensity = 250};
  pass.counted.counts.refused = "nobody may count; ask somebody";
  return pass;
}

const Finding* find(const std::vector<Finding>& findings, const std::string& subject) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& f) { return f.subject == subject; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(Findings, GradeTheRateByItsPartOfThePeak) {
  for (const auto& [part, grade] : std::initializer_list<std::pair<double, Grade>>{
           {0.6, Grade::good}, {0.4, Grade::fair}, {0.2, Grade::poor}}) {
    const auto findings = findings_of(pass_at(part), peaks(1e12, 1e12));
    const Finding* rate = find(findings, "forward: rate");
    ASSERT_NE(rate, nullptr);
    EXPECT_EQ(rate->grade, grade) << part;
    EXPECT_NE(rate->rule.find("48 %"), std::string::npos) << rate->rule;
    EXPECT_EQ(rate->advice.empty(), grade == Grade::good);
  }
}

TEST(Findings, AMemoryBoundPassIsHeldAgainstTheBandwidth) {
  PassProfile pass = pass_at(0.05);
  pass.roof.intensity = 1;
  pass.result.memory = {.inputs = 1'700'000'000};
  const auto findings = findings_of(pass, peaks(1e12, 1e12));
  EXPECT_EQ(find(findings, "forward: rate"), nullptr);
  ASSERT_NE(find(findings, "forward: bandwidth"), nullptr);
  EXPECT_EQ(find(findings, "forward: bandwidth")->grade, Grade::good);
}

TEST(Findings, ARateWithoutAPeakIsNotCalledGood) {
  PassProfile pass = pass_at(0.6);
  pass.roof = {};
  const auto findings = findings_of(pass, {});
  ASSERT_NE(find(findings, "forward: rate"), nullptr);
  EXPECT_EQ(find(findings, "forward: rate")->grade, Grade::fair);
}

TEST(Findings, SpeedupDtypeAndSteadiness) {
  PassProfile pass = pass_at(0.6);
  const auto plain = findings_of(pass, peaks(1e12, 1e12));
  EXPECT_EQ(find(plain, "forward: speed-up"), nullptr) << "nothing to compare with";
  EXPECT_EQ(find(plain, "forward: dtype"), nullptr);
  EXPECT_EQ(find(plain, "forward: steadiness"), nullptr);
  pass.speedup = 1.5;
  pass.result.measurement.ms.ci95 = Interval{1, 2};
  const auto findings = findings_of(pass, peaks(1e12, 8e12));
  EXPECT_EQ(find(findings, "forward: speed-up")->grade, Grade::poor);
  EXPECT_NE(find(findings, "forward: dtype")->figure.find("8.0 times"), std::string::npos);
  EXPECT_NE(find(findings, "forward: steadiness"), nullptr);
}

TEST(Findings, CountersAreJudgedWhereThereAreSome) {
  PassProfile pass = pass_at(0.6);
  EXPECT_EQ(find(findings_of(pass, peaks(1e12, 1e12)), "forward: instructions"), nullptr);
  pass.counted = {.counts = {.values = {{2e9, 1e9, {}, {}, {}}}}, .calls = 2};
  const auto findings = findings_of(pass, peaks(1e12, 1e12));
  EXPECT_EQ(find(findings, "forward: instructions")->grade, Grade::fair);
  EXPECT_NE(compute_metrics_text({.passes = {pass}, .peaks = peaks(1e12, 1e12)})
                .find("instructions a cycle:       0.50"),
            std::string::npos);
}

TEST(ProfileSummary, SaysWhatWasRefusedAndWhatToolsWouldAdd) {
  const Profile profile{.passes = {pass_at(0.6)}, .peaks = peaks(1e12, 1e12), .machine = "a CPU"};
  const std::string text =
      summary_text(profile, {{.name = "nsys", .adds = "a time line", .path = "/bin/nsys"},
                             {.name = "ncu", .adds = "counters"}});
  for (const char* part : {"None: nobody may count; ask somebody.", "`nsys` (found at /bin/nsys",
                           "`ncu` (not on the PATH here) would add counters", "60.0 %", "a CPU"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(verdict_text(profile), "good: every target is met");
}

TEST(ProfileSummary, OfAGpuSaysThatItsCountersAreNotReadYet) {
  PassProfile pass = pass_at(0.2);
  pass.result.device = {.kind = Device::Kind::cuda};
  const Profile profile{.passes = {pass}, .peaks = peaks(1e12, 1e12)};
  const std::string text = summary_text(profile, {});
  EXPECT_NE(text.find("not read yet"), std::string::npos) << text;
  EXPECT_NE(text.find("strobe tune"), std::string::npos) << text;
  EXPECT_NE(verdict_text(profile).find("needs work: forward: rate"), std::string::npos);
}

TEST(RooflineSvg, HasRoofsAndPoints) {
  const std::vector<RooflinePoint> points = {
      {.label = "flash <forward>", .intensity = 250, .flops_per_second = 6e11}, {.label = "none"}};
  const std::string svg = roofline_svg(peaks(1e12, 8e12), points, "a & b");
  for (const char* part : {"<svg ", "fp32 1 TFLOP/s", "bf16 8 TFLOP/s", "memory 100 GB/s",
                           "flash &lt;forward&gt;", "a &amp; b", "</svg>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
  }
  EXPECT_EQ(svg.find("none<"), std::string::npos) << "what has no place on log axes is left out";
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(roofline_svg({}, {}, "nothing").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace strobe::lab
