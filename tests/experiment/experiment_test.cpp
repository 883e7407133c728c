#include "experiment/experiment.h"

#include <gtest/gtest.h>

#include <set>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

TEST(Experiments, HaveNamesAndQuestionsOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Experiment& each : experiments()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_TRUE(each.question.ends_with("?")) << each.question;
    EXPECT_EQ(&find_experiment(each.name), &each);
  }
}

TEST(Experiments, SayWhichThereAre) {
  try {
    find_experiment("nothing");
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("'nothing'"), std::string::npos) << what;
    EXPECT_NE(what.find("fusion"), std::string::npos) << what;
  }
}

TEST(Experiments, HoldOnlyIfEveryExpectationDid) {
  const auto with = [](Conclusion conclusion) {
    Findings findings;
    findings.expectations = {{.conclusion = Conclusion::held}, {.conclusion = conclusion}};
    return findings;
  };
  EXPECT_TRUE(with(Conclusion::held).all_held());
  EXPECT_FALSE(with(Conclusion::failed).all_held());
  EXPECT_FALSE(with(Conclusion::undecided).all_held());
}

TEST(Experiments, WriteWhatWasExpectedAndWhatCameOfIt) {
  Findings findings{.subject = "a subject", .tables = "a table\n", .why = "because"};
  findings.expectations = {
      {.expected = "much", .rule = "at least 3", .seen = "2", .conclusion = Conclusion::failed}};
  findings.results = {{{"length", 7}}};
  const Experiment& experiment = experiments().front();
  const std::string text = findings_text(experiment, findings);
  for (const char* part : {"a subject", "a table", "Expected: much", "at least 3", "seen: 2",
                           "did not hold", "because"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const auto records = result_records(experiment, {}, findings);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["kind"], "experiment-row");
  EXPECT_EQ(records[0]["length"], 7);
  EXPECT_EQ(records[1]["kind"], "experiment");
  EXPECT_EQ(records[1]["held"], false);
  EXPECT_EQ(records[1]["expectations"][0]["verdict"], "did not hold");
  EXPECT_TRUE(records[1].contains("machine"));
  EXPECT_TRUE(timed_records(experiment, {}, findings).empty());
}

}  // namespace
}  // namespace strobe::lab
