#include "report/sweep_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/record.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

json table_record(const std::string& problem, double ms,
                  const std::string& implementation = "flash") {
  Benchmark b;
  b.implementation = implementation;
  b.problem = Problem::parse(problem);
  if (ms > 0) {
    b.measurement = {.samples_ms = {ms}, .ms = {.min = ms, .mean = ms, .max = ms, .median = ms}};
  } else {
    b.status = Status::out_of_memory;
  }
  b.flops = 1e9;
  b.memory = {.inputs = 3'000'000, .outputs = 1'000'000};
  return record_of(
      b, {.threads = 2, .flops_per_second = {{DType::fp32, 1e12}}, .copy = {{1 << 20, 1e18}}});
}

void expect_lines(const std::string& table, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(("\n" + table).find("\n" + line + "\n"), std::string::npos) << line << "\n" << table;
  }
}

TEST(SweepTable, AListHasARowForEveryRecord) {
  json first = table_record("b2 sq8 h1 d8 fp32", 2);
  first["ms"]["ci95"] = {1.99, 2.03};
  const std::string table =
      list_table(std::vector{first, table_record("b2 sq8 h1 d8 fp32 bwd", 0, "standard")});
  expect_lines(table, {"flash           b2 sq8 h1 d8 fp32              2.000  1.0 %   0.5000      "
                       "50 %          4.0 "
                       "         -  not-checked",
                       "standard        b2 sq8 h1 d8 fp32 bwd  out-of-memory      -        -       "
                       "  -            - "
                       "         -  -"});
}

TEST(SweepTable, WithoutARooflineThereIsNoPartOfIt) {
  json record = table_record("b2 sq8 h1 d8 fp32", 2);
  record.erase("roofline");
  expect_lines(
      list_table(std::vector{record}),
      {"flash           b2 sq8 h1 d8 fp32      2.000    -   0.5000         -          4.0  "
       "        -  not-checked"});
}

TEST(SweepTable, ThroughputHasThePublishedColumns) {
  const std::string table =
      throughput_table(std::vector{table_record("b2 sq8 h1 d16 fp32 causal", 2),
                                   table_record("b2 sq8 h1 d16 fp32 causal bwd", 6),
                                   table_record("b4 sq8 h1 d16 fp32 causal", 0)});
  expect_lines(
      table,
      {"flash, fp32 causal",
       "batch_size  seq_len  nheads  head_size  fwd_only  throughput(iters/s)  latency(ms/iter)  "
       "peak memory(MB/device)  speed(TFLOPS)",
       "         2        8       1         16  True                  500.000             2.000  "
       "                     4         0.5000",
       "         4        8       1         16  True            out-of-memory                 -  "
       "                     -              -",
       "         2        8       1         16  False                 125.000             8.000  "
       "                     4         0.2500"});
}

TEST(SweepTable, WhateverElseDiffersHasATableOfItsOwn) {
  const std::string table = throughput_table(
      std::vector{table_record("b2 sq8 h1 d16 fp32", 2), table_record("b2 sq8 h1 d16 bf16", 2),
                  table_record("b2 sq8 h1 d16 bf16", 2, "standard")});
  expect_lines(table, {"flash, fp32", "flash, bf16", "standard, bf16"});
}

TEST(SweepTable, AGridComparesPassesAndImplementations) {
  const std::string table = grid_table(std::vector{
      table_record("b8 sq8 h1 d16 fp32", 6, "standard"), table_record("b8 sq8 h1 d16 fp32", 2),
      table_record("b8 sq8 h1 d16 fp32 bwd", 0, "standard"),
      table_record("b8 sq8 h1 d16 fp32 bwd", 5)});
  expect_lines(table,
               {"b8 h1 fp32: median times in ms",
                "head dim  seqlen  forward standard  forward flash  speed-up  backward standard  "
                "backward flash  speed-up  standard MB  flash MB",
                "      16       8             6.000          2.000     3.00x      out-of-memory  "
                "         5.000         -          4.0       4.0"});
}

TEST(SweepTable, TimesOfWhatFailedItsCheckAreNotShownWithoutIt) {
  json wrong = table_record("b8 sq8 h1 d16 fp32", 6, "standard");
  wrong["status"] = "failed";
  expect_lines(
      grid_table(std::vector{wrong, table_record("b8 sq8 h1 d16 fp32", 2)}),
      {"      16       8            failed          2.000         -            -       4.0"});
  expect_lines(
      throughput_table(std::vector{wrong}),
      {"         8        8       1         16  True                   failed                 "
       "-                       -              -"});
}

}  // namespace
}  // namespace strobe::lab
