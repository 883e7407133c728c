#include "report/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/record.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

/// Reads RFC 4180: rows of cells.
std::vector<std::vector<std::string>> parse(const std::string& text) {
  std::vector<std::vector<std::string>> rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      rows.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      rows.back().emplace_back();
    } else if (!quoted && c == '\n') {
      if (i + 1 < text.size()) rows.emplace_back(1, "");
    } else {
      rows.back().back() += c;
    }
  }
  return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row,
                 std::string_view column) {
  const auto columns = csv_columns();
  const auto found = std::find(columns.begin(), columns.end(), column);
  return rows.at(row).at(static_cast<std::size_t>(found - columns.begin()));
}

json timed_record() {
  Benchmark b;
  b.implementation = "flash";
  b.problem = Problem::parse("b2 sq9 h4 hk2 d8 fp16 causal");
  b.measurement = {.samples_ms = {1, 3}, .ms = {.min = 1, .mean = 2, .max = 3, .median = 2.5}};
  b.flops = 4e9;
  return record_of(b, {.threads = 2, .flops_per_second = {{DType::fp32, 4e12}}});
}

TEST(Csv, HasARowForEveryRecord) {
  json failed = timed_record();
  failed.erase("ms");
  failed["reason"] = "needs \"more\", much more,\nmemory";
  const auto rows = parse(csv_of(std::vector{timed_record(), failed}));
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), csv_columns().size());
  EXPECT_EQ(rows[0][0], "implementation");
  EXPECT_EQ(cell(rows, 1, "implementation"), "flash");
  EXPECT_EQ(cell(rows, 1, "seqlen_q"), "9");
  EXPECT_EQ(cell(rows, 1, "heads_k"), "2");
  EXPECT_EQ(cell(rows, 1, "causal"), "true");
  EXPECT_EQ(cell(rows, 1, "window_left"), "-1");
  EXPECT_EQ(cell(rows, 1, "ms_p50"), "2.5");
  EXPECT_EQ(cell(rows, 1, "samples"), "2");
  EXPECT_EQ(cell(rows, 1, "threads"), "2");
  EXPECT_EQ(cell(rows, 1, "problem"), "b2 sq9 h4 hk2 d8 fp16 causal");
  EXPECT_EQ(cell(rows, 1, "reason"), "");
  EXPECT_EQ(cell(rows, 2, "ms_p50"), "") << "what was not measured is empty";
  EXPECT_EQ(cell(rows, 2, "reason"), "needs \"more\", much more,\nmemory");
}

TEST(Csv, OfNothingIsItsTitles) {
  EXPECT_EQ(parse(csv_of({})).size(), 1u);
  const auto columns = csv_columns();
  EXPECT_EQ(std::set(columns.begin(), columns.end()).size(), columns.size());
}

}  // namespace
}  // namespace strobe::lab
