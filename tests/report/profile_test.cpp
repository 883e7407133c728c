#include "report/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "measure/device_metrics.h"
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
      summary_text(profile, {{.name = "nsys", .adds = "a time line", .files = {"a.rep", "b.txt"}},
                             {.name = "ncu", .adds = "counters", .trouble = "not here"}});
  for (const char* part :
       {"None: nobody may count; ask somebody.", "`nsys` left a time line: `a.rep`, `b.txt`.",
        "`ncu` (not here) would add counters", "60.0 %", "a CPU"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(verdict_text(profile), "good: every target is met");
}

/// A pass on a GPU whose kernels were counted.
PassProfile counted_pass() {
  PassProfile pass = pass_at(0.2);
  pass.result.device = {.kind = Device::Kind::cuda};
  pass.device_counts = {
      .metrics = {metric::kTime, metric::kDramRead, metric::kDramWritten, metric::kDramBusy,
                  metric::kSmActive, metric::kSmThroughput, metric::kTensorBusy,
                  "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                  "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"},
      .unknown = {metric::kL2HitRate,
                  "smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio"},
      .kernels = {{.name = "hopper_forward(Params)",
                   .launch = {.grid = {132, 1, 1}, .block = {384, 1, 1}, .registers = 168},
                   .values = {3e5, 6e6, 2e6, 30, 95, 60, 25, 3, 1}},
                  {.name = "fold",
                   .launch = {.grid = {8, 1, 1}, .block = {64, 1, 1}, .local_bytes = 16},
                   .values = {1e5, 1e6, 1e6, 10, 75, 20, 5, 1, 1}}},
      .passes = 10};
  return pass;
}

TEST(ProfileSummary, OfAGpuSaysWhyNothingWasCounted) {
  PassProfile pass = pass_at(0.2);
  pass.result.device = {.kind = Device::Kind::cuda};
  pass.device_counts.refused = "nobody may count; ask somebody";
  const Profile profile{.passes = {pass}, .peaks = peaks(1e12, 1e12)};
  const std::string text = summary_text(profile, {});
  for (const char* part :
       {"None: nobody may count; ask somebody.", "| DRAM | not counted |", "strobe tune"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(verdict_text(profile).find("needs work: forward: rate"), std::string::npos);
  EXPECT_NE(memory_metrics_text(profile).find("nobody may count"), std::string::npos);
}

TEST(ProfileSummary, OfAGpuShowsItsCounters) {
  const Profile profile{.passes = {counted_pass()}, .peaks = peaks(1e12, 1e12)};
  const std::string text = summary_text(profile, {});
  for (const char* part : {"| DRAM | 25.0 % of its peak |", "| Multiprocessors (SM) | 50.0 %",
                           "| Tensor cores | 20.0 %", "| read from DRAM: | 7.0 MB |",
                           "| found in the L2 cache: | not counted here |"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const std::string memory = memory_metrics_text(profile), compute = compute_metrics_text(profile);
  for (const char* part :
       {"read from DRAM:", "7.0 MB", "dram__bytes_read.sum", "this GPU does not count",
        "lts__t_sector_hit_rate.pct", "hopper_forward ", "132x1x1", "168", "with cold caches",
        "Caches are emptied before a call"})
    EXPECT_NE(memory.find(part), std::string::npos) << part << "\n" << memory;
  for (const char* part :
       {"tensor cores, of their peak:", "20.0 %", "Warps wait for", "long scoreboard", "71.4 %",
        "400.0 us", "does not tell how long warps wait for: imc miss."})
    EXPECT_NE(compute.find(part), std::string::npos) << part << "\n" << compute;
}

TEST(Findings, OfAGpuAreMadeFromItsCounters) {
  PassProfile pass = counted_pass();
  const auto findings = findings_of(pass, peaks(1e12, 1e12));
  ASSERT_NE(find(findings, "forward: multiprocessors"), nullptr);
  EXPECT_EQ(find(findings, "forward: multiprocessors")->grade, Grade::good);
  EXPECT_EQ(find(findings, "forward: tensor cores")->grade, Grade::poor);
  EXPECT_NE(find(findings, "forward: tensor cores")->advice.find("long scoreboard most (71 %"),
            std::string::npos);
  EXPECT_EQ(find(findings, "forward: DRAM traffic")->grade, Grade::fair);
  EXPECT_NE(find(findings, "forward: DRAM traffic")->figure.find("2.50 times"), std::string::npos);
  EXPECT_EQ(find(findings, "forward: local memory")->grade, Grade::poor);
  EXPECT_EQ(find(findings, "forward: DRAM"), nullptr) << "the problem is bound by arithmetic";
  pass.roof.intensity = 1;
  EXPECT_EQ(find(findings_of(pass, peaks(1e12, 1e12)), "forward: DRAM")->grade, Grade::poor);
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
