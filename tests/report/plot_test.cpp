#include "report/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/record.h"
#include "strobe/error.h"
#include "support/environment.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

json plot_record(const std::string& problem, double ms = 2,
                 const std::string& implementation = "flash") {
  Benchmark b;
  b.implementation = implementation;
  b.problem = Problem::parse(problem);
  b.measurement = {.samples_ms = {ms}, .ms = {.min = ms, .mean = ms, .max = ms, .median = ms}};
  b.flops = flops(b.problem);
  return record_of(b, {.threads = 2, .flops_per_second = {{DType::fp32, 1e12}}});
}

std::vector<std::string> labels(const std::vector<json>& records) {
  std::vector<std::string> all;
  const auto plots = plots_of(records);
  for (const Plot::Line& line : plots.at(0).lines) all.push_back(line.label());
  return all;
}

TEST(Plot, AreNamedByQuantityAndMask) {
  std::vector<std::string> names;
  for (const Plot& plot :
       plots_of(std::vector{plot_record("s8 fp32"), plot_record("s8 fp32 causal")})) {
    names.push_back(plot.name + ".png");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"time_ms_causal_false.png", "time_ms_causal_true.png",
                                             "tflops_causal_false.png", "tflops_causal_true.png"}));
  EXPECT_EQ(names, plot_files());
  EXPECT_EQ(plots_of(std::vector{plot_record("s8 fp32 causal")}).size(), 2u)
      << "none without results";
  EXPECT_TRUE(plots_of({}).empty());
}

TEST(Plot, LinesAreWhatVaries) {
  EXPECT_EQ(labels({plot_record("s8 fp32"), plot_record("s16 fp32")}),
            (std::vector<std::string>{"forward"}));
  EXPECT_EQ(labels({plot_record("s8 fp32"), plot_record("s8 fp32 bwd"), plot_record("s16 fp32")}),
            (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(labels({plot_record("s8 d16 fp32"), plot_record("s8 d32 bf16"),
                    plot_record("s8 d16 fp32", 1, "x")}),
            (std::vector<std::string>{"flash, d16, fp32", "flash, d32, bf16", "x, d16, fp32"}));
  EXPECT_EQ(
      labels({plot_record("s8 fp32", 1, "x"), plot_record("s8 fp32 bwd", 1, "x"),
              plot_record("s8 fp32"), plot_record("s8 fp32 bwd")}),
      (std::vector<std::string>{"x, forward", "x, backward", "flash, forward", "flash, backward"}));
  EXPECT_EQ(labels({plot_record("b4 s8 fp32"), plot_record("b2 s16 fp32")}).size(), 1u)
      << "a batch that follows the length is no line of its own";
  EXPECT_EQ(labels({plot_record("b4 s8 fp32"), plot_record("b2 s8 fp32")}),
            (std::vector<std::string>{"b4", "b2"}));
  EXPECT_EQ(labels({plot_record("s8 fp32 w4:0"), plot_record("s8 fp32 w8:0")}).size(), 2u);
}

TEST(Plot, PointsAreSortedByLengthAndOnlyResults) {
  json failed = plot_record("s32 fp32");
  failed["status"] = "out-of-memory";
  const auto plots =
      plots_of(std::vector{plot_record("s16 fp32", 3), plot_record("s8 fp32", 1), failed});
  ASSERT_EQ(plots.at(0).lines.size(), 1u);
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(plots[0].lines[0].points, (Points{{8, 1}, {16, 3}}));
}

TEST(Plot, TitlesSayWhatIsCommonAndWhere) {
  const auto plots =
      plots_of(std::vector{plot_record("b4 s8 h2 d16 fp32"), plot_record("b2 s16 h1 d32 fp32")});
  for (const char* part :
       {"flash", "forward", "32 tokens in all", "hidden size 32", "fp32", "2 threads"}) {
    EXPECT_NE(plots.at(0).subtitle.find(part), std::string::npos) << part << plots[0].subtitle;
  }
}

TEST(Plot, TheScriptHasUnitsAndQuotesNames) {
  Plot plot =
      plots_of(std::vector{plot_record("s512 fp32", 3), plot_record("s2048 fp32", 100)}).at(0);
  plot.subtitle = "some'body";
  const std::string script = gnuplot_script(plot, "it's.png");
  for (const char* part : {"'it''s.png'", "'some''body'", "(ms", "'2k' 2048", "'512' 512",
                           "logscale x", "logscale y", "2048 100\n", "'10' 10"}) {
    EXPECT_NE(script.find(part), std::string::npos) << part << " in " << script;
  }
}

TEST(Plot, DrawsPngFiles) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "there is no gnuplot";
  const std::string folder = testing::TempDir() + "strobe plot's test/deep";
  std::filesystem::remove_all(folder);
  draw(plots_of(std::vector{plot_record("s512 fp32", 3), plot_record("s2048 fp32 bwd", 100)}),
       folder);
  for (const char* name : {"time_ms_causal_false.png", "tflops_causal_false.png"}) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    std::string signature(8, ' ');
    file.read(signature.data(), 8);
    EXPECT_EQ(signature, "\x89PNG\r\n\x1a\n") << name;
  }
  const auto files = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 2);
}

TEST(Plot, NamesThePackageThatIsMissing) {
  const test::ScopedVariable nowhere("PATH", "/nonexistent");
  try {
    draw({}, testing::TempDir());
    FAIL() << "drew without gnuplot";
  } catch (const InvalidArgument&) {
    FAIL() << "is not wrong usage";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gnuplot-nox"), std::string::npos);
  }
}

}  // namespace
}  // namespace strobe::lab
