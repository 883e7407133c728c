#include "experiment/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measure/peaks.h"
#include "report/record.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

constexpr std::array kExperiments{
    Experiment{"fusion", "What does flash attention save over the unfused computation?",
               fusion_experiment},
    Experiment{"alignment", "What does a head dim cost whose rows are not aligned, 129 say?",
               alignment_experiment},
    Experiment{"accumulation", "What do precision and order of sums cost in accuracy?",
               accumulation_experiment},
    Experiment{"io-model", "Does memory traffic follow the theory of input and output?",
               io_model_experiment},
    Experiment{"memory", "How does the memory that attention takes grow with the length?",
               memory_experiment},
    Experiment{"recompute",
               "What does it cost to compute the weights again instead of keeping them?",
               recompute_experiment},
    Experiment{"occupancy",
               "What do tiles take of a GPU's registers, and is that what makes speed?",
               occupancy_experiment},
};

json expectation_record(const Expectation& expectation) {
  return {{"expected", expectation.expected},
          {"rule", expectation.rule},
          {"seen", expectation.seen},
          {"verdict", name_of(expectation.conclusion)}};
}

json conclusion_record(const Experiment& experiment, const ExperimentSetup& setup,
                       const Findings& findings) {
  json record = record_of_kind("experiment", {{"experiment", experiment.name},
                                              {"subject", findings.subject},
                                              {"device", to_string(setup.device)},
                                              {"held", findings.all_held()},
                                              {"expectations", json::array()}});
  for (const Expectation& expectation : findings.expectations)
    record["expectations"].push_back(expectation_record(expectation));
  record.update(provenance_record(setup.options.threads, setup.device.index));
  return record;
}

}  // namespace

std::string_view name_of(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::held:
      return "held";
    case Conclusion::failed:
      return "did not hold";
    default:
      return "undecided";
  }
}

bool Findings::all_held() const {
  return std::all_of(expectations.begin(), expectations.end(),
                     [](const Expectation& each) { return each.conclusion == Conclusion::held; });
}

std::span<const Experiment> experiments() {
  return kExperiments;
}

const Experiment& find_experiment(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Experiment& experiment : kExperiments) {
    if (experiment.name == name) return experiment;
    names.push_back(experiment.name);
  }
  throw InvalidArgument("experiment", fmt::format("is '{}', allowed is one of {}; strobe "
                                                  "experiment --list says what each asks",
                                                  name, fmt::join(names, ", ")));
}

std::string findings_text(const Experiment& experiment, const Findings& findings) {
  std::string text = fmt::format("{}: {}\n{}\n\n{}\n", experiment.name, experiment.question,
                                 findings.subject, findings.tables);
  for (const Expectation& each : findings.expectations) {
    text += fmt::format("Expected: {}\n  rule: {}\n  seen: {}\n  {}\n", each.expected, each.rule,
                        each.seen, name_of(each.conclusion));
  }
  return text + fmt::format("\nWhy: {}\n", findings.why);
}

std::vector<json> timed_records(const Experiment& experiment, const ExperimentSetup& setup,
                                const Findings& findings) {
  std::vector<json> records;
  if (findings.timed.empty()) return records;  // peaks take seconds
  const Peaks peaks = peaks_of(setup.device, setup.options.threads);
  for (const TimedRow& row : findings.timed) {
    records.push_back(record_of(row.benchmark, peaks));
    records.back()["experiment"] = {{"name", experiment.name}};
    records.back()["experiment"].update(row.fields);
  }
  return records;
}

std::vector<json> result_records(const Experiment& experiment, const ExperimentSetup& setup,
                                 const Findings& findings) {
  std::vector<json> records;
  for (const json& row : findings.results) {
    records.push_back(record_of_kind("experiment-row", {{"experiment", experiment.name}}));
    records.back().update(row);
  }
  records.push_back(conclusion_record(experiment, setup, findings));
  return records;
}

}  // namespace strobe::lab
