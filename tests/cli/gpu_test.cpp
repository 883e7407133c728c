// GPUs, the libraries they need and the kernels compiled for them, as the program shows them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;

json cuda_info(const std::string& variables = "") {
  const Outcome outcome = shell(variables + " strobe info --json -");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return lines(outcome.out).at(0)["cuda"];
}

/// Tests that compile kernels skip, and say why, where there is no compiler.
class Kernels : public testing::Test {
 protected:
  void SetUp() override {
    const json nvrtc = cuda_info()["nvrtc"];
    if (nvrtc.contains("missing")) GTEST_SKIP() << nvrtc["missing"].get<std::string>();
  }
};

TEST(InfoOfGpus, NamesEachLibraryOrSaysWhatIsMissing) {
  const json cuda = cuda_info();
  EXPECT_TRUE(contains(cuda["backend"]["path"], "libstrobe_cuda.so")) << cuda;
  for (const char* library : {"driver", "nvrtc", "nvml", "cublas", "cudnn", "cupti"}) {
    EXPECT_TRUE(cuda[library].contains("missing") || cuda[library].contains("version")) << cuda;
  }
  EXPECT_TRUE(!cuda["devices"].empty() || cuda["unavailable"].is_string()) << cuda;
}

TEST(InfoOfGpus, SaysWhyNoneIsUsed) {
  const auto expect = [](const std::string& variables, const std::string& words) {
    EXPECT_TRUE(contains(cuda_info(variables)["unavailable"], words)) << variables;
    const Outcome text = shell(variables + " strobe info");
    EXPECT_TRUE(contains(text.out, "none used: ")) << text.out;
    EXPECT_TRUE(contains(text.out, words)) << text.out;
  };
  expect("STROBE_CUDA_LIBRARY=/no/such/backend.so", "the CUDA backend is not there");
  expect("STROBE_CUDA_LIBRARY=libm.so.6", "was not built together with this libstrobe");
  expect("STROBE_CUDA_DRIVER=/no/such/driver.so", "there is no NVIDIA driver");
  const json cuda = cuda_info(
      "STROBE_NVRTC=/no/such/compiler.so STROBE_NVML=/no/such/nvml.so "
      "STROBE_CUPTI=/no/such/cupti.so");
  EXPECT_TRUE(contains(cuda["nvrtc"]["missing"], "there is no NVRTC")) << cuda;
  EXPECT_TRUE(contains(cuda["nvml"]["missing"], "there is no NVML")) << cuda;
  EXPECT_TRUE(contains(cuda["cupti"]["missing"], "there is no CUPTI")) << cuda;
}

TEST(InfoOfGpus, WithoutABackendEverythingElseWorks) {
  const std::string without = "STROBE_CUDA_LIBRARY=/no/such/backend.so ";
  EXPECT_EQ(shell(without + "strobe verify --problem 's40 d16 fp32'").status, 0);
  for (const char* command : {"strobe cache list", "strobe warmup --arch sm_90a"}) {
    const Outcome outcome = shell(without + command);
    EXPECT_EQ(outcome.status, 3) << command;
    EXPECT_TRUE(contains(outcome.err, "the CUDA backend is not there")) << outcome.err;
  }
}

TEST(Warmup, ErrorsSayWhatIsAllowed) {
  const auto expect = [](const std::string& command, int status, const std::string& words) {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, status) << command;
    EXPECT_TRUE(contains(outcome.err, words)) << outcome.err;
  };
  expect("strobe warmup --arch sm_75", 2, "sm_80");
  expect("strobe warmup --arch sm_90a --kernel paint", 2, "pad_rows");
  expect("STROBE_CUDA_DRIVER=/no/such/driver.so strobe warmup", 3, "--arch sm_90a");
  const std::string empty = "STROBE_CACHE_DIR=$PWD/cache STROBE_NVRTC=/no/such/compiler.so ";
  expect(empty + "strobe warmup --arch sm_90a", 3, "there is no NVRTC");
}

TEST_F(Kernels, AreCompiledAheadListedAndCleared) {
  const Outcome outcome = shell(
      "export STROBE_CACHE_DIR=$PWD/cache; strobe warmup --arch sm_80,sm_90a --kernel pad_rows "
      "--json first && strobe warmup --arch sm_80 --kernel pad_rows --json second && strobe cache "
      "list --json third "
      "&& strobe cache clear && strobe cache list --json fourth && cat first; echo; cat second; "
      "echo; cat third; test ! -e fourth");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::size_t compiled = 0;
  std::size_t found = 0;
  std::size_t listed = 0;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("{")) continue;
    const json record = json::parse(line);
    if (record["kind"] == "cached-kernel") {
      ++listed;
      EXPECT_TRUE(contains(record["compiler"], "NVRTC")) << record;
      EXPECT_GT(record["bytes"], 0);
    } else {
      ++(record["from_cache"] ? found : compiled);
      EXPECT_EQ(record["spill_bytes"], 0) << record;
      EXPECT_LE(record["registers"], record["planned_registers"]) << record;
    }
  }
  EXPECT_GT(compiled, 0u);
  EXPECT_EQ(found, compiled / 2) << "of two architectures, one again";
  EXPECT_EQ(listed, compiled);
  EXPECT_TRUE(contains(outcome.out, "Removed ")) << outcome.out;
}

TEST_F(Kernels, AreShownInTheirOrderOnAnyNumberOfThreads) {
  const Outcome outcome = shell(
      "for n in 1 5; do STROBE_CACHE_DIR=$PWD/cache$n strobe warmup --arch sm_80,sm_90a --kernel "
      "pad_rows,pause --threads $n --json -; done 2>/dev/null");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto records = lines(outcome.out);
  ASSERT_GT(records.size(), 4u);
  ASSERT_EQ(records.size() % 2, 0u);
  for (std::size_t i = 0; i < records.size() / 2; ++i) {
    const json& same = records[i + records.size() / 2];
    EXPECT_FALSE(same["from_cache"]);
    for (const char* field : {"kernel", "architecture", "configuration", "registers"}) {
      EXPECT_EQ(records[i][field], same[field]) << i;
    }
  }
}

TEST_F(Kernels, AFolderThatCannotBeWrittenIsToldOnce) {
  const Outcome outcome = shell(
      "touch cache; STROBE_CACHE_DIR=$PWD/cache strobe warmup --arch sm_90a --kernel pad_rows");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::size_t first = outcome.err.find("compiled kernels are not kept");
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("compiled kernels are not kept", first + 1), std::string::npos);
}

TEST_F(Kernels, EightProcessesMayRaceForAnEmptyCache) {
  const Outcome outcome = shell(
      "export STROBE_CACHE_DIR=$PWD/cache; for i in 1 2 3 4 5 6 7 8; do "
      "strobe warmup --arch sm_90a --kernel pad_rows --json record$i >/dev/null & pids=\"$pids "
      "$!\"; "
      "done; for pid in $pids; do wait $pid || exit 1; done; "
      "strobe warmup --arch sm_90a --kernel pad_rows --json - 2>/dev/null; "
      "ls -A cache/kernels | grep -v 'kernel$'; cat record*");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto records = lines(outcome.out);
  ASSERT_EQ(records.size() % 9, 0u) << outcome.out;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const json& first = records[i % (records.size() / 9)];
    EXPECT_EQ(records[i]["configuration"], first["configuration"]);
    EXPECT_EQ(records[i]["registers"], first["registers"]);
    EXPECT_TRUE(first["from_cache"]) << "left whole by the others";
  }
}

}  // namespace
}  // namespace strobe::test
