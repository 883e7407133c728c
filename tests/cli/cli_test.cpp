#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace strobe::test {
namespace {

using nlohmann::json;

/// One sentence on the standard error, nothing on the standard output.
void expect_refusal(const std::string& arguments, int status, const std::string& about) {
  const Outcome outcome = strobe(arguments);
  EXPECT_EQ(outcome.status, status) << arguments;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_EQ(outcome.err.rfind("strobe: ", 0), 0u) << arguments << ": " << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, about)) << arguments << ": " << outcome.err;
}

constexpr const char* kSmallBench =
    "bench --batch 1 --seqlen 64 --nheads 2 --headdim 16 --repeats 2 ";

TEST(Info, SaysWhatIsHere) {
  const Outcome outcome = strobe("info");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"CPU", "STROBE_CPU_ISA", "STROBE_THREADS", "Memory", "GPU",
                           "TFLOP/s by ", "TOP/s by ", "flash", "standard", "oracle"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part;
  }
}

TEST(Info, RecordsHavePeaksAndWhatSamplingAdds) {
  const Outcome outcome = shell(
      "export STROBE_CACHE_DIR=$PWD/cache; strobe info --measure --threads 2 --json - && "
      "strobe info --threads 2 --json -");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json record = lines(outcome.out).at(0);
  const json& cpu = record["peaks"].at(0);
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_EQ(cpu["threads"], 2);
  for (const char* dtype : {"fp32", "fp16", "bf16", "int8"})
    EXPECT_GT(cpu["tflops"][dtype].get<double>(), 0) << dtype;
  double best = 0;
  for (const json& rate : cpu["instructions"]) {
    if (rate["dtype"] == "fp32") best = std::max(best, rate["tflops"].get<double>());
  }
  EXPECT_DOUBLE_EQ(best, cpu["tflops"]["fp32"]);
  ASSERT_FALSE(cpu["copy"].empty());
  EXPECT_GT(cpu["copy"].back()["bandwidth_gbps"].get<double>(), 0);
  EXPECT_GT(record["sampler_us"]["between"].get<double>(),
            record["sampler_us"]["sample"].get<double>());
  const json known = lines(outcome.out).at(1);
  EXPECT_EQ(known["peaks"].at(0), cpu) << "they are kept";
  EXPECT_FALSE(known.contains("sampler_us"));
}

TEST(Info, SaysWhereTheNumberOfThreadsComesFrom) {
  const Outcome outcome =
      strobe("info >/dev/null; STROBE_THREADS=1 STROBE_PIN=1 " STROBE_PROGRAM " info");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1 (STROBE_THREADS)")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "a core of its own (STROBE_PIN)")) << outcome.out;
}

TEST(Info, RefusesAPinThatIsNoAnswer) {
  for (const char* command : {" info", " verify --problem 's8 d8 fp32'",
                              " bench --seqlen 8 --threads 1 --repeats 1 --no-grad"}) {
    const Outcome outcome =
        strobe(std::string("list >/dev/null; STROBE_PIN=yes " STROBE_PROGRAM) + command);
    EXPECT_NE(outcome.status, 0) << command;
    EXPECT_TRUE(contains(outcome.out + outcome.err, "STROBE_PIN is 'yes', allowed is 0 or 1"))
        << command << ": " << outcome.out << outcome.err;
  }
}

TEST(ThreadOptions, CanBeSetInEveryCommandThatRunsKernels) {
  for (const char* command :
       {"info", "verify", "bench", "compare", "profile", "sweep", "baseline save"}) {
    EXPECT_TRUE(contains(strobe(std::string(command) + " --help").out, "--threads")) << command;
    expect_refusal(std::string(command) + (command == std::string("baseline save") ? " x" : "") +
                       " --threads 0",
                   2, "--threads");
  }
}

TEST(ThreadOptions, AreUsedAsManyAsAsked) {
  const Outcome verified = strobe("verify --problem 's40 h2 d16 fp32' --threads 3");
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "threads 3")) << verified.out;
  const Outcome compared = strobe(
      "compare --quick --problem 's64 h2 d16 fp32' --threads 1 --impl flash --no-pin --json -");
  ASSERT_EQ(compared.status, 0) << compared.err;
  const json record = lines(compared.out).at(0);
  EXPECT_EQ(record["machine"]["threads"], 1);
  EXPECT_EQ(record["plan"]["threads"], "1");
  EXPECT_EQ(record["sampling"]["pinned"], false);
}

TEST(Info, RefusesAnIsaThatIsNotThere) {
  const Outcome outcome = strobe("info >/dev/null; STROBE_CPU_ISA=mmx " STROBE_PROGRAM " info");
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "strobe: STROBE_CPU_ISA")) << outcome.err;
}

TEST(List, ShowsFeaturesOfEveryImplementation) {
  const Outcome outcome = strobe("list");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"flash", "standard", "oracle", "gemm", "backward", "varlen", "dropout", "yes"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part;
  }
}

TEST(List, LoadsNoLibraryForAGpuThatIsNotThere) {
  const Outcome outcome =
      shell("STROBE_CUDA_DRIVER=/nowhere/libcuda.so LD_DEBUG=files strobe list");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out + outcome.err, "libstrobe.so")) << "nothing to look at";
  for (const char* library : {"libcudnn", "libcublas", "libnvrtc"}) {
    EXPECT_FALSE(contains(outcome.err, library)) << library;
  }
}

TEST(List, SaysWhyOneCannotRunAtAll) {
  const Outcome outcome =
      strobe("list >/dev/null; STROBE_GEMM_LIBRARY=none " STROBE_PROGRAM " list");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "gemm cannot run here; it lacks ")) << outcome.out;
}

TEST(List, SaysWhoSupportsAProblem) {
  const Outcome outcome = strobe("list --problem 's128 d64 bf16 causal'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "b1 sq128 h1 d64 bf16 causal")) << outcome.out;
}

TEST(List, ExitsWithThreeIfNobodyDoes) {
  const Outcome outcome = strobe("list --problem 's128 d64 int8'");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "int8")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "strobe: ")) << outcome.err;
}

TEST(Verify, PrintsTheDifferencesOfOneProblem) {
  const Outcome outcome = strobe("verify --problem 'b2 s40 h4 hk2 d16 bf16 causal'");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  std::size_t at = 0;
  for (const char* line :
       {"Output max diff: ", "Output mean diff: ", "dQ max diff: ", "dK max diff: ",
        "dV max diff: ", "dQ mean diff: ", "dK mean diff: ", "dV mean diff: ", "Allowed", "PASS"}) {
    at = outcome.out.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << "\n" << outcome.out;
  }
  EXPECT_FALSE(contains(outcome.err, "\x1b")) << "no progress outside of a terminal";
}

TEST(Verify, ForwardAloneHasNoGradients) {
  const Outcome outcome =
      strobe("verify --problem 's40 d16 fp32' --pass forward --impl flash,standard");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Implementation: standard"));
  EXPECT_FALSE(contains(outcome.out, "dQ"));
}

TEST(Verify, TakesEveryKindOfInput) {
  const Outcome outcome = strobe(
      "verify --problem 's40 d16 fp16 bias:qk' --inputs-scale 3 --seed 9 --storage sliced "
      "--distribution opposed --masked-bias");
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "x3, opposed, sliced, masked bias, inputs 9")) << outcome.out;
}

TEST(Verify, TheSharesOfAGridAreAllOfIt) {
  const auto cases = [](const std::string& share) {
    const Outcome outcome =
        strobe("verify --grid quick --impl flash --pass forward --share " + share);
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    return std::stoi(outcome.out);
  };
  EXPECT_EQ(cases("1/12") * 12, 192);
  EXPECT_EQ(cases("12/12") * 12, 192);
}

TEST(Verify, WritesRecords) {
  const Outcome outcome = strobe("verify --problem 's40 d16 fp16' --impl flash,oracle --json -");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto records = lines(outcome.out);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["implementation"], "flash");
  EXPECT_EQ(records[1]["error"]["rule"], "pass");
  EXPECT_TRUE(contains(outcome.err, "PASS")) << "the text goes elsewhere then";
}

TEST(Bench, PrintsTimesRatesMemoryAndError) {
  const Outcome outcome = strobe(kSmallBench);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"Forward Pass Results:", "Backward Pass Results:", "Time (min):", "Time (avg):",
        "Time (max):", "Time (median):", "TFLOP/s (peak):", "TFLOP/s (avg):", "Of the roofline:",
        "workspace", "against the oracle", "PASS"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(Bench, DefaultsAreThoseOfTheQuickStart) {
  const Outcome outcome = strobe("bench --repeats 1 --no-grad");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Problem: b2 sq1024 h8 d64 fp32\n")) << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "Backward"));
}

TEST(Bench, OptionsMakeTheProblem) {
  const Outcome outcome = strobe(
      "bench --batch 3 --seqlen 20 --seqlen-k 30 --nheads 4 --kv-heads 2 --headdim 8 --causal "
      "--dtype bf16 --repeats 1 --no-grad --impl standard --threads 1 --json -");
  const auto records = lines(outcome.out);
  ASSERT_EQ(records.size(), 1u) << outcome.err;
  EXPECT_EQ(records[0]["problem"], "b3 sq20 sk30 h4 hk2 d8 bf16 causal");
  EXPECT_EQ(records[0]["implementation"], "standard");
  EXPECT_EQ(records[0]["samples"].size(), 1u);
  EXPECT_EQ(records[0]["machine"]["threads"], 1);
  EXPECT_GT(records[0]["roofline"], 0);
}

TEST(Bench, TakesAProblemByItsText) {
  const Outcome outcome = strobe("bench --problem 'lq20,3 h2 d8 fp16' --repeats 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "Problem: b2 lq20,3 h2 d8 fp16\n")) << outcome.out;
}

TEST(Compare, NamesTheFastestAndTheLeanest) {
  const Outcome outcome =
      strobe("compare --quick --problem 's64 d16 fp32' --problem 's32 d8 bf16 bwd'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"b1 sq64 h1 d16 fp32", "b1 sq32 h1 d8 bf16 bwd", "flash", "standard",
                           "Speed-up", "1.00x", "pass", "Fastest: ", "Lowest memory: "}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
}

TEST(Compare, HasMatrixProductsWhereThereIsALibrary) {
  const Outcome without = strobe("list >/dev/null; STROBE_GEMM_LIBRARY=none " STROBE_PROGRAM
                                 " compare --quick --problem 's64 d16 fp32'");
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_FALSE(contains(without.out, "gemm")) << without.out;

  if (strobe("bench --impl gemm --problem 's8 fp32' --repeats 1").status == 3) {
    GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  }
  const Outcome with = strobe("compare --quick --problem 's64 d16 fp32'");
  EXPECT_EQ(with.status, 0) << with.err;
  EXPECT_TRUE(contains(with.out, "gemm")) << with.out;
}

TEST(Compare, WritesARecordForEveryRow) {
  const Outcome outcome =
      strobe("compare --quick --problem 's64 d16 fp32' --impl oracle,flash --json -");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(lines(outcome.out).size(), 2u);
  EXPECT_EQ(lines(outcome.out)[0]["implementation"], "oracle");
}

TEST(Compare, TimesModesInTurns) {
  const std::string arguments =
      "compare --quick --problem 's64 d16 fp32 bwd' --impl standard,flash --also "
      "deterministic,tf32";
  const Outcome outcome = strobe(arguments + " --json -");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = lines(outcome.out);
  ASSERT_EQ(rows.size(), 6u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["implementation"], i < 3 ? "standard" : "flash");
    EXPECT_EQ(rows[i]["sampling"]["interleaved_with"], 5);
  }
  const Outcome text = strobe(arguments);
  for (const char* part : {"flash deterministic ", "flash tf32 ", "standard deterministic "})
    EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
  std::istringstream in(text.out);
  for (std::string line; std::getline(in, line);) {
    const bool is_base = line.starts_with("flash  ");  // the last one, in the usual way
    EXPECT_TRUE(!is_base || line.ends_with(" 1.00x")) << line;
  }
}

TEST(Compare, TimesAProductBesideThem) {
  if (strobe("bench --impl gemm --problem 's8 fp32' --repeats 1").status == 3) {
    GTEST_SKIP() << "needs oneDNN or OpenBLAS";
  }
  const std::string arguments =
      "compare --quick --impl flash --product 96 --problem 's64 d16 fp32'";
  const Outcome text = strobe(arguments + " --problem 's64 d16 fp16'");
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"\nproduct of 96x96 ", "The product of 96x96 is by ", "products of fp16"})
    EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;

  const auto rows = lines(strobe(arguments + " --json -").out);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["sampling"]["interleaved_with"], 1);
  EXPECT_EQ(rows[0]["product"]["size"], 96);
  EXPECT_GT(rows[0]["product"]["tflops"]["p50"], 0);

  expect_refusal("compare --quick --problem s64 --product 0", 2, "--product");
  expect_refusal("compare --problem s64 --impl flash,cuda:flash --product 8", 2, "one device");
}

TEST(Bench, TakesTheSpellingsOfOtherTools) {
  for (const char* arguments :
       {"--batch 1 --seqlen 32 --nheads 2 --headdim 16 --causal --dtype fp16 --repeats 3 --no-grad",
        "--batch_size 1 --seq_len 32 --nheads 2 --head_size 16 --causal --dtype fp16 --repeats 3 "
        "--fwd_only"}) {
    const Outcome outcome = strobe(std::string("bench --json - ") + arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_EQ(lines(outcome.out).size(), 1u) << arguments;
    EXPECT_EQ(lines(outcome.out)[0]["problem"], "b1 sq32 h2 d16 fp16 causal");
    EXPECT_EQ(lines(outcome.out)[0]["samples"].size(), 3u);
  }
}

TEST(Bench, TimesThePassesItIsAskedFor) {
  const auto passes = [](const std::string& arguments) {
    std::string names;
    for (const json& record : lines(strobe(kSmallBench + arguments + " --json -").out)) {
      names += record["pass"].get<std::string>() + " ";
    }
    return names;
  };
  EXPECT_EQ(passes(""), "forward backward ");
  EXPECT_EQ(passes("--pass both"), "forward backward ");
  EXPECT_EQ(passes("--pass backward"), "backward ");
  EXPECT_EQ(passes("--no-grad"), "forward ");
  EXPECT_EQ(passes("--preset batch-inference"), "forward ") << "sizes of the line go before";
}

TEST(Bench, SamplesUntilItIsSureEnough) {
  const Outcome outcome = strobe(
      "bench --batch 1 --seqlen 64 --nheads 1 --headdim 16 --no-grad --target 50 --cache cold "
      "--json -");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json record = lines(outcome.out).at(0);
  EXPECT_GE(record["samples"].size(), 6u) << "fewer have no confidence interval";
  EXPECT_LE(record["ms"]["ci95"][0], record["ms"]["p50"]);
  EXPECT_EQ(record["sampling"]["cache"], "cold");
  EXPECT_EQ(record["sampling"]["target"], 0.5);
}

TEST(Compare, CanKeepQuietForItsRecords) {
  const std::string arguments =
      "compare --quick --problem 's64 h2 d16 fp32' --impl flash --quiet --json -";
  const Outcome outcome = strobe(arguments);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(lines(outcome.out).size(), 1u) << outcome.out;
  EXPECT_EQ(lines(outcome.out)[0]["command"], "strobe " + arguments);
}

TEST(Compare, TakesSizesAndTellsSpeedAgainstTheBase) {
  const Outcome outcome = strobe(
      "compare --quick --batch 1 --seqlen 48 --nheads 2 --headdim 16 --pass both "
      "--impl flash,standard --base flash");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "b1 sq48 h2 d16 fp32\n")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "b1 sq48 h2 d16 fp32 bwd\n")) << outcome.out;
  const std::size_t row = outcome.out.find("\nflash ");
  const std::string line = outcome.out.substr(row + 1, outcome.out.find('\n', row + 1) - row - 1);
  EXPECT_TRUE(line.ends_with(" 1.00x")) << line;
}

TEST(Compare, ARowSaysWhatCouldNotRun) {
  const Outcome outcome =
      strobe("compare --quick --problem 'b1 sq200000 h16 d16 fp32' --impl standard --json -");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  ASSERT_EQ(lines(outcome.out).size(), 1u);
  EXPECT_EQ(lines(outcome.out)[0]["status"], "out-of-memory");
  EXPECT_TRUE(contains(outcome.err, "out-of-memory")) << outcome.err;
}

TEST(Json, RefusesAnExistingFileUnlessForced) {
  const std::string path = fresh_path("records");
  std::ofstream(path) << "precious\n";
  expect_refusal(kSmallBench + ("--json " + path), 2, "--force");
  EXPECT_EQ(read_file(path), "precious\n");
  EXPECT_EQ(strobe(kSmallBench + ("--force --json " + path)).status, 0);
  EXPECT_EQ(lines(read_file(path)).size(), 2u);
  expect_refusal(kSmallBench + std::string("--json /nowhere/at/all"), 2, "/nowhere/at/all");
  const std::string folder = fresh_path("folder");
  std::filesystem::create_directory(folder);
  expect_refusal(kSmallBench + ("--force --json " + folder), 2, "is a folder");
}

TEST(Json, AFullDiskIsNotPassedOver) {
  const Outcome file = strobe(kSmallBench + std::string("--force --json /dev/full"));
  EXPECT_EQ(file.status, 3);
  EXPECT_TRUE(contains(file.err, "'/dev/full': No space left")) << file.err;
  const Outcome records = shell(std::string("strobe ") + kSmallBench + "--json - >/dev/full");
  EXPECT_EQ(records.status, 3);
  EXPECT_TRUE(contains(records.err, "No space left")) << records.err;
}

TEST(Usage, AFullDiskForWhatIsPrintedIsNotPassedOver) {
  const Outcome outcome = shell("strobe list >/dev/full");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(contains(outcome.err, "standard output cannot be written: No space left"))
      << outcome.err;
}

TEST(Json, WorkThatFailsDestroysNothing) {
  const std::string path = fresh_path("records");
  std::ofstream(path) << "precious\n";
  EXPECT_EQ(strobe("bench --problem 's8 int8' --force --json " + path).status, 3);
  EXPECT_EQ(read_file(path), "precious\n");
}

TEST(Usage, ErrorsNameWhatIsWrongAndWhatIsAllowed) {
  expect_refusal("", 2, "strobe --help");
  expect_refusal("paint", 2, "paint");
  expect_refusal("bench --sequence 4", 2, "--sequence");
  expect_refusal("bench --batch two", 2, "--batch is 'two', allowed is a whole number from 1");
  expect_refusal("bench --batch -1", 2, "--batch is '-1'");
  expect_refusal("bench --headdim 513", 2, "512");
  expect_refusal("bench --nheads 8 --kv-heads 3", 2, "--kv-heads");
  expect_refusal("bench --preset gpt5", 2, "gpt2-small");
  expect_refusal("bench --layout heap", 2, "qkvpacked");
  expect_refusal("bench --pass sideways", 2, "--pass");
  expect_refusal("bench --repeats 3 --target 2", 2, "--target");
  expect_refusal("bench --cache lukewarm", 2, "--cache");
  expect_refusal("bench --problem s8 --preset gpt2-small", 2, "--preset");
  expect_refusal("compare --problem s8 --base oracle", 2, "those compared: flash, ");
  expect_refusal("bench --dtype fp64", 2, "fp32");
  expect_refusal("bench --repeats 0", 2, "--repeats");
  expect_refusal("bench --problem 's8' --batch 3", 2, "--batch");
  expect_refusal("bench --impl nobody", 2, "flash, standard, oracle");
  expect_refusal("verify --impl flash,nobody", 2, "flash, standard, oracle");
  expect_refusal("compare --impl nobody", 2, "flash, standard, oracle");
  expect_refusal("compare --deterministic --also deterministic", 2, "which all are");
  expect_refusal("compare --also tf32,tf32", 2, "twice");
  expect_refusal("compare --also slow", 2, "deterministic");
  expect_refusal("compare --quick --budget 4", 2, "--budget");
  expect_refusal("experiment fusion --quick --budget 4", 2, "--budget");
  expect_refusal("verify --problem 's8 purple'", 2, "purple");
  expect_refusal("verify --problem 'd64'", 2, "length");
  expect_refusal("verify --problem 's8' --grid quick", 2, "--grid");
  expect_refusal("verify --grid huge", 2, "quick");
  expect_refusal("verify --grid quick --share 5/4", 2, "K/N");
  expect_refusal("verify --grid quick --share half", 2, "K/N");
  expect_refusal("verify --grid quick --share 99999/99999", 2, "none of the grid's");
  expect_refusal("verify --problem 's8' --share 1/2", 2, "--share");
  expect_refusal("verify --grid quick --seed 5", 2, "--problem");
  expect_refusal("verify --masked-bias", 2, "--problem");
  expect_refusal("verify --problem 's8' --pass sideways", 2, "forward");
  expect_refusal("verify --problem 's8' --storage upside-down", 2, "transposed");
  expect_refusal("verify --problem 'lq3,4' --storage expanded", 2, "expanded");
  expect_refusal("list --problem 's8 s9'", 2, "s9");
}

TEST(Usage, WhatThisMachineCannotDoExitsWithThree) {
  expect_refusal("bench --problem 's8 int8'", 3, "int8");
  EXPECT_EQ(strobe("bench --problem 'b1000000 s1000000 h8 d64' --no-grad").status, 3);
  const Outcome compare = strobe("compare --quick --problem 's8 int8'");
  EXPECT_EQ(compare.status, 3);
}

class EverySubcommand : public testing::TestWithParam<const char*> {};

TEST_P(EverySubcommand, HelpHasAnExampleThatRunsAsPrinted) {
  const Outcome help = strobe(std::string(GetParam()) + " --help");
  EXPECT_EQ(help.status, 0);
  const std::size_t example = help.out.find("Example:");
  ASSERT_NE(example, std::string::npos) << help.out;
  const std::size_t command = help.out.find("strobe ", example);
  ASSERT_NE(command, std::string::npos);
  const Outcome run = shell(help.out.substr(command, help.out.find('\n', command) - command));
  if (contains(run.err, "there is no NVRTC")) GTEST_SKIP() << run.err;
  // On a busy machine a check may well find something slower.
  const int allowed = std::string(GetParam()) == "baseline check" ? 1 : 0;
  EXPECT_LE(run.status, allowed) << run.err;
  EXPECT_GE(run.status, 0);
}

INSTANTIATE_TEST_SUITE_P(, EverySubcommand,
                         testing::Values("info", "list", "verify", "bench", "compare", "baseline",
                                         "baseline save", "baseline check", "profile", "sweep",
                                         "report", "warmup", "cache", "cache list", "cache clear"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(Usage, VersionAndHelpGoToTheStandardOutput) {
  EXPECT_EQ(strobe("--version").out.rfind("strobe ", 0), 0u);
  const Outcome help = strobe("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* part : {"info", "list", "verify", "bench", "compare", "report", "Exit status"}) {
    EXPECT_TRUE(contains(help.out, part)) << part;
  }
}

}  // namespace
}  // namespace strobe::test
