#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/benchmark.h"

// Experiments: questions about attention that a measurement answers. Each is a file of its own,
// which says what is expected before it looks, and by which rule it decides.
namespace strobe::lab {

/// What an experiment is done on.
struct ExperimentSetup {
  Device device{};
  /// What users say of the problem, applied to the experiment's own; as it is if they say nothing.
  std::function<Problem(const Problem& usual)> choose_problem{};
  bool quick = false;
  PlanOptions options{};
  SamplingPolicy sampling{};
  std::int64_t memory_limit = 0;  ///< bytes that it may take; 0: what the machine can spare
  std::string architecture{};     ///< GPU to compile for where there is none: "sm_90a"
  /// Called before each step of the work.
  std::function<void(const std::string& what)> progress{};

  Problem problem(const Problem& usual) const {
    return choose_problem ? choose_problem(usual) : usual;
  }
  bool on_cpu() const { return device.kind == Device::Kind::cpu; }
  void announce(const std::string& what) const {
    if (progress) progress(what);
  }
};

enum class Conclusion : std::uint8_t { held, failed, undecided };

/// "held", "did not hold", "undecided"
std::string_view name_of(Conclusion conclusion);

/// What was expected, and what came of it.
struct Expectation {
  std::string expected{};
  std::string rule{};  ///< what decides, with its thresholds
  std::string seen{};  ///< the figures that the rule was applied to, or why there are none
  Conclusion conclusion = Conclusion::undecided;

  static Conclusion decide(bool held) { return held ? Conclusion::held : Conclusion::failed; }
};

/// A result that was timed, and what the experiment knows of it beside its record.
struct TimedRow {
  Benchmark benchmark{};
  nlohmann::json fields = nlohmann::json::object();
};

struct ExperimentFile {
  std::string name{};
  std::string text{};
};

/// What an experiment found.
struct Findings {
  std::string subject{};  ///< what it was done on, "b1 sq1024 h8 d64 fp32 on the CPU"
  std::string tables{};   ///< rendered, for people
  std::vector<Expectation> expectations{};
  std::string why{};                      ///< what explains it
  std::vector<TimedRow> timed{};          ///< records, as other commands write them
  std::vector<nlohmann::json> results{};  ///< rows that are no times
  std::vector<ExperimentFile> files{};    ///< pictures and traces

  bool all_held() const;
};

/// One experiment: adding one is adding a file, its declaration and a line to the table.
struct Experiment {
  std::string_view name;
  std::string_view question;
  Findings (*run)(const ExperimentSetup& setup);
};

std::span<const Experiment> experiments();

/// Throws InvalidArgument listing the names there are.
const Experiment& find_experiment(std::string_view name);

/// Tables, expectations with their rules and verdicts, and why.
std::string findings_text(const Experiment& experiment, const Findings& findings);

/// The records of what was timed: those of `bench`, with the experiment's name and fields.
std::vector<nlohmann::json> timed_records(const Experiment& experiment,
                                          const ExperimentSetup& setup, const Findings& findings);

/// One object for each row that is no time, and the last with what was expected and came of it.
std::vector<nlohmann::json> result_records(const Experiment& experiment,
                                           const ExperimentSetup& setup, const Findings& findings);

// The experiments, each in the file of its name.
Findings accumulation_experiment(const ExperimentSetup& setup);
Findings alignment_experiment(const ExperimentSetup& setup);
Findings fusion_experiment(const ExperimentSetup& setup);
Findings io_model_experiment(const ExperimentSetup& setup);
Findings memory_experiment(const ExperimentSetup& setup);
Findings occupancy_experiment(const ExperimentSetup& setup);
Findings recompute_experiment(const ExperimentSetup& setup);

}  // namespace strobe::lab
