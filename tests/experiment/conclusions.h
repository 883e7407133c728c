#pragma once

#include <gtest/gtest.h>

#include <string>

#include "experiment/experiment.h"

namespace strobe::test {

/// A setup of small sizes and few samples.
inline lab::ExperimentSetup small_setup(const std::string& problem) {
  lab::ExperimentSetup setup{.quick = true, .sampling = lab::SamplingPolicy::exactly(2)};
  if (!problem.empty())
    setup.choose_problem = [problem](const Problem&) { return Problem::parse(problem); };
  return setup;
}

/// What became of the expectation that has these words.
inline lab::Conclusion conclusion_of(const lab::Findings& findings, const std::string& words) {
  for (const lab::Expectation& each : findings.expectations) {
    if (each.expected.find(words) == std::string::npos) continue;
    EXPECT_FALSE(each.rule.empty());
    EXPECT_FALSE(each.seen.empty());
    return each.conclusion;
  }
  ADD_FAILURE() << "nothing was expected about " << words;
  return lab::Conclusion::undecided;
}

/// Tables, reasons, a picture, and nothing that is no number.
inline void expect_whole(const lab::Findings& findings) {
  EXPECT_FALSE(findings.subject.empty());
  EXPECT_FALSE(findings.tables.empty());
  EXPECT_FALSE(findings.why.empty());
  EXPECT_FALSE(findings.expectations.empty());
  bool picture = false;
  for (const lab::ExperimentFile& file : findings.files) {
    if (!file.name.ends_with(".svg")) continue;
    picture = true;
    EXPECT_EQ(file.text.find("nan"), std::string::npos) << file.text;
  }
  EXPECT_TRUE(picture);
}

}  // namespace strobe::test
