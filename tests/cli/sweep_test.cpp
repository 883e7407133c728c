#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;
using Points = std::multiset<std::pair<std::string, std::string>>;

// Sixteen points, done in a moment.
const std::string kSmallSweep =
    "sweep --batch 1 --seqlen 16:32:*2 --nheads 2 --headdim 8,16 --causal both "
    "--impl flash,standard --pass forward --budget 0.001 ";

std::vector<json> records_of(const std::string& path) {
  std::vector<json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) records.push_back(json::parse(line));
  return records;
}

/// What a file holds results of, as often as it does.
Points points_of(const std::string& path) {
  Points points;
  for (const json& record : records_of(path)) {
    points.emplace(record.at("implementation"), record.at("problem"));
  }
  return points;
}

/// One sentence on the standard error, nothing on the standard output, and no file.
void expect_sweep_refusal(const std::string& arguments, const std::string& about) {
  const std::string path = fresh_path("refused");
  const Outcome outcome = strobe("sweep -o " + path + " " + arguments);
  EXPECT_EQ(outcome.status, 2) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_EQ(outcome.err.rfind("strobe: ", 0), 0u) << arguments << ": " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, about)) << arguments << ": " << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path)) << arguments;
}

TEST(Sweep, ErrorsNameTheOptionAndWhatIsAllowed) {
  expect_sweep_refusal("--impl flash,nobody", "flash, standard, oracle");
  expect_sweep_refusal("--batch -1", "--batch");
  expect_sweep_refusal("--seqlen 512:256:*2", "--seqlen is '512:256:*2'");
  expect_sweep_refusal("--seqlen 512:1024:+0", "step from 1");
  expect_sweep_refusal("--seqlen 512:1024", "FIRST:LAST:*FACTOR");
  expect_sweep_refusal("--batch tokens/1000", "--batch is 'tokens/1000'");
  expect_sweep_refusal("--nheads 6 --kv-heads 2,4", "--kv-heads is 4");
  expect_sweep_refusal("--dtype fp32,fp64", "--dtype is 'fp64'");
  expect_sweep_refusal("--pass sideways", "--pass");
  expect_sweep_refusal("--preset table", "throughput-table, attention-grid, paper");
  expect_sweep_refusal("--shrink 3 --seqlen 64", "--shrink is 3");
  expect_sweep_refusal("--shrink 2", "--seqlen");
  expect_sweep_refusal("--budget -1", "--budget");
  expect_sweep_refusal("--csv /no/such/folder/x.csv", "--csv '/no/such/folder/x.csv'");
  expect_sweep_refusal("--force --csv /dev/null", "--csv '/dev/null' is not a file");
  expect_sweep_refusal("--plots /dev/null", "--plots '/dev/null'");
  expect_sweep_refusal("--batch 1000000 --seqlen 1000000", "b1000000 sq1000000");
}

TEST(Sweep, MeasuresEveryPointAndPrintsThem) {
  const std::string path = fresh_path("records");
  const Outcome outcome = strobe(kSmallSweep + "-o " + path);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "[16/16] standard on b1 sq32 h2 d16 fp32 causal: "));
  EXPECT_FALSE(contains(outcome.err, "\x1b")) << "no bar outside of a terminal";
  const Points points = points_of(path);
  EXPECT_EQ(points.size(), 16u);
  EXPECT_EQ(points.count({"flash", "b1 sq16 h2 d8 fp32"}), 1u);
  for (const auto& [implementation, problem] : points) {
    EXPECT_TRUE(contains(outcome.out, problem)) << problem;
  }
  const json first = records_of(path).front();
  EXPECT_EQ(first["status"], "ok");
  EXPECT_EQ(first["error"]["rule"], "pass");
  EXPECT_EQ(first["sweep"]["shrink"], 1);
}

TEST(Sweep, TheSameCommandAgainMeasuresNothing) {
  const std::string path = fresh_path("records");
  const Outcome first = strobe(kSmallSweep + "-o " + path);
  const std::string text = read_file(path);
  const Outcome again = strobe(kSmallSweep + "-o " + path);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, first.out) << "drawn from the records";
  EXPECT_EQ(read_file(path), text);
  EXPECT_TRUE(contains(again.err, "16 of 16")) << again.err;
  EXPECT_EQ(strobe(kSmallSweep + "--force -o " + path).status, 0);
  EXPECT_EQ(points_of(path).size(), 16u);
  EXPECT_NE(read_file(path), text) << "measured anew";
}

TEST(Sweep, ATornRecordIsCutOffAndMeasuredAgain) {
  const std::string path = fresh_path("records");
  strobe(kSmallSweep + "-o " + path);
  const Points points = points_of(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  const Outcome outcome = strobe(kSmallSweep + "-o " + path);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "cut off")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "15 of 16")) << outcome.err;
  EXPECT_EQ(points_of(path), points);
}

std::ptrdiff_t count_lines(const std::string& path) {
  const std::string text = read_file(path);
  return std::count(text.begin(), text.end(), '\n');
}

/// Runs the program and kills it once it has added that many records.
void run_and_kill(const std::string& arguments, const std::string& path, std::ptrdiff_t records) {
  const std::ptrdiff_t enough = count_lines(path) + records;
  const std::string command = "exec " STROBE_PROGRAM " " + arguments + " >/dev/null 2>&1";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    if (count_lines(path) >= enough) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Sweep, AKilledSweepGoesOnWhereItStopped) {
  const std::string straight = fresh_path("straight"), path = fresh_path("killed");
  // Large enough for a kill to come between two points.
  const std::string command =
      "sweep --batch 1 --seqlen 128:256:*2 --nheads 2 --headdim 16,32 --causal both "
      "--impl flash,standard --pass forward --budget 0.05 -o ";
  ASSERT_EQ(strobe(command + straight).status, 0);
  std::set<std::ptrdiff_t> stops;
  for (const std::ptrdiff_t records : {0, 1, 3, 2, 4, 1}) {
    run_and_kill(command + path, path, records);
    stops.insert(count_lines(path));
  }
  stops.erase(16);
  EXPECT_GE(stops.size(), 2u) << "it was killed at different moments, and not only at the end";
  const Outcome last = strobe(command + path);
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(points_of(path), points_of(straight)) << "none lost, none twice, none torn";
}

TEST(Sweep, FilesThatAreNotItsOwnAreLeftAlone) {
  const std::string path = fresh_path("records");
  const auto expect_kept = [&](const std::string& text, const std::string& about) {
    std::ofstream(path) << text;
    const Outcome outcome = strobe(kSmallSweep + "-o " + path);
    EXPECT_EQ(outcome.status, 2) << text;
    EXPECT_TRUE(contains(outcome.err, about)) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "--force")) << outcome.err;
    EXPECT_EQ(read_file(path), text);
  };
  expect_kept("precious\n", "line 1");
  expect_kept("precious", "precious");
  expect_kept("{\"precious\": true}", "line 1");
  expect_kept("{\"schema\":1,\"problem\":\"b1 sq\n{\"schema\":1}\n", "line 1: is not a whole JSON");
  std::filesystem::remove(path);
  strobe("sweep --seqlen 8 --headdim 8 --nheads 1 --pass forward --budget 0.001 -o " + path);
  expect_kept(read_file(path), "flash on b2 sq8 h1 d8 fp32");
  EXPECT_EQ(strobe(kSmallSweep + "--force -o " + path).status, 0);
  EXPECT_EQ(points_of(path).size(), 16u);
}

TEST(Sweep, AFileInUseIsRefused) {
  const std::string path = fresh_path("records");
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  for (const char* force : {"", "--force "}) {
    const Outcome outcome = strobe(kSmallSweep + force + "-o " + path);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "another sweep")) << outcome.err;
  }
  close(file);
}

TEST(Sweep, AFailedCheckIsToldByTheExitStatusAtTheEnd) {
  const std::string path = fresh_path("records");
  strobe(kSmallSweep + "-o " + path);
  auto records = records_of(path);
  records.pop_back();
  records[3]["status"] = "failed";
  records[3]["reason"] = "inaccurate";
  std::ofstream file(path);
  for (const json& record : records) file << record << '\n';
  file.close();
  const Outcome outcome = strobe(kSmallSweep + "-o " + path);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "inaccurate"));
  EXPECT_EQ(points_of(path).size(), 16u) << "it goes through all the same";
}

TEST(Sweep, AWorkspaceThatDoesNotFitIsAResult) {
  const std::string path = fresh_path("records");
  const Outcome outcome = strobe(
      "sweep --batch 1 --seqlen 16,524288 --nheads 1 --headdim 1 --window 8:0 --pass forward "
      "--impl standard "
      "--budget 0.001 -o " +
      path);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(records_of(path).at(1).at("status"), "out-of-memory") << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "out-of-memory")) << outcome.out;
}

TEST(Sweep, WritesCsv) {
  const std::string path = fresh_path("records"), csv = fresh_path("csv");
  const std::string command = kSmallSweep + "-o " + path + " --csv " + csv;
  EXPECT_EQ(strobe(command).status, 0);
  const std::string text = read_file(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17);
  EXPECT_EQ(text.rfind("implementation,", 0), 0u);
  const Outcome again = strobe(command);
  EXPECT_EQ(again.status, 2) << "it exists";
  EXPECT_TRUE(contains(again.err, "--csv")) << again.err;
  EXPECT_EQ(read_file(csv), text);
  const std::filesystem::path same(csv + ".x");
  for (const std::filesystem::path& spelled :
       {same, same.parent_path() / "." / same.filename(), std::filesystem::relative(same)}) {
    const Outcome both = strobe(kSmallSweep + "-o " + same.string() + " --csv " + spelled.string());
    EXPECT_EQ(both.status, 2) << spelled;
    EXPECT_TRUE(contains(both.err, "--csv")) << both.err;
    EXPECT_FALSE(std::filesystem::exists(same)) << spelled;
  }
}

TEST(Sweep, ADiskThatFillsWhileCsvIsWrittenIsNoWrongUsage) {
  const std::string sweep = "strobe " + kSmallSweep + "-o records ";
  const Outcome outcome = shell(sweep + ">/dev/null 2>&1; (trap '' XFSZ; ulimit -f 1; " + sweep +
                                "--csv table.csv >/dev/null); status=$?; ls; exit $status");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "--csv 'table.csv' cannot be written: ")) << outcome.err;
  EXPECT_EQ(outcome.out, "records\n") << "nothing else is left";
}

TEST(Sweep, DrawsPlots) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "there is no gnuplot";
  const std::string path = fresh_path("records"), folder = path + ".plots";
  std::filesystem::remove_all(folder);
  const std::string command = kSmallSweep + "-o " + path + " --plots " + folder;
  const Outcome outcome = strobe(command);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"time_ms_causal_false", "time_ms_causal_true", "tflops_causal_false",
                           "tflops_causal_true"}) {
    const std::string picture = read_file(folder + "/" + name + ".png");
    EXPECT_EQ(picture.rfind("\x89PNG\r\n\x1a\n", 0), 0u) << name;
  }
  EXPECT_EQ(strobe(command).status, 2) << "they exist";
}

TEST(Sweep, WithoutGnuplotTheRecordsAreKept) {
  const std::string path = fresh_path("records");
  const Outcome outcome = strobe("--version >/dev/null; PATH=/nonexistent " STROBE_PROGRAM " " +
                                 kSmallSweep + "-o " + path + " --plots " + fresh_path("plots"));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "gnuplot-nox")) << outcome.err;
  EXPECT_EQ(points_of(path).size(), 16u);
}

TEST(Sweep, ADryRunMeasuresNothing) {
  const std::string path = fresh_path("records");
  const Outcome outcome = strobe(kSmallSweep + "--dry-run -o " + path);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "16 points, about ")) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Sweep, PresetsAreScaledUnlessToldOtherwise) {
  const std::string output = "--dry-run -o " + fresh_path("records");
  const Outcome scaled = strobe("sweep --preset paper " + output);
  EXPECT_EQ(scaled.status, 0) << scaled.err;
  EXPECT_TRUE(contains(scaled.out, "72 points"));
  const Outcome given =
      strobe("sweep --preset paper --headdim 64 --shrink 32 --pass forward " + output);
  EXPECT_TRUE(contains(given.out, "b32 sq16 h32 d64 fp32 causal")) << given.out;
  EXPECT_TRUE(contains(given.out, "12 points")) << given.out;
  const Outcome whole = strobe("sweep --preset attention-grid --shrink 1 " + output);
  EXPECT_TRUE(contains(whole.out, "b8 sq16384 h1 d128 fp32 bwd")) << whole.out;
  EXPECT_FALSE(contains(whole.err, "scaled"));
}

TEST(Sweep, APresetGoesOnWithTheScaleOfItsRecords) {
  const std::string path = fresh_path("records");
  const std::string part = "sweep --preset throughput-table --batch 1 --nheads 1 --headdim 8 ";
  const std::string rest = "--budget 0.001 -o " + path;
  ASSERT_EQ(strobe(part + "--shrink 256 " + rest).status, 0);
  const Outcome again = strobe(part + rest);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "divided by 256")) << again.err;
  EXPECT_TRUE(contains(again.err, "10 of 10")) << again.err;
  EXPECT_TRUE(contains(again.out, "throughput(iters/s)")) << again.out;
}

TEST(Sweep, CausalMayBeBare) {
  const std::string path = fresh_path("records");
  const Outcome outcome = strobe("sweep --causal --seqlen 16 --headdim 8 --dry-run -o " + path);
  EXPECT_TRUE(contains(outcome.out, "b2 sq16 h8 d8 fp32 causal bwd")) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace strobe::test
