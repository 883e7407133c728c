// `strobe compare` within a process that has implementations of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/own_implementation.h"
#include "cli/program.h"

namespace strobe::cli {
namespace {

using test::contains;

/// Writes zeros, which takes no time and is wrong.
void write_zeros(const Plan&, const Tensors& tensors) {
  for (const TensorView* view : {&tensors.out, &tensors.lse}) {
    const auto count = static_cast<std::size_t>(view->elements());
    std::fill_n(static_cast<float*>(view->data), count, 0.0F);
  }
}

/// The line of a table that begins with this name.
std::string row_of(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return line;
  }
  return "";
}

std::string last_word(const std::string& line) {
  return line.substr(line.find_last_of(' ') + 1);
}

TEST(Compare, WhatIsWrongWinsNothing) {
  test::add_own_implementation("wrong", write_zeros);
  const auto compare = [](const std::string& names, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"compare", "--quick", "--problem", "b1 s64 h2 d16 fp32",
                                       "--impl",  names};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_here(arguments).out;
  };
  for (const char* order : {"standard,wrong", "wrong,standard"}) {
    const std::string text = compare(order);
    EXPECT_TRUE(contains(text, "Fastest: standard ")) << text;
    EXPECT_EQ(last_word(row_of(text, "standard")), "1.00x") << text;
    EXPECT_TRUE(contains(row_of(text, "wrong"), " fail ")) << text;
    EXPECT_EQ(last_word(row_of(text, "wrong")), "-") << text;
  }
  const std::string base = compare("standard,wrong", {"--base", "wrong"});
  EXPECT_EQ(last_word(row_of(base, "standard")), "1.00x") << base;
  const std::string alone = compare("wrong");
  EXPECT_FALSE(contains(alone, "Fastest")) << alone;
}

}  // namespace
}  // namespace strobe::cli
