#include "experiment/experiment.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/byte_size.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/output_folder.h"
#include "cli/run.h"
#include "cli/run_options.h"
#include "report/table.h"

namespace strobe::cli {
namespace {

struct ExperimentOptions {
  std::string name{};
  bool list = false;
  bool quick = false;
  std::string folder{};  ///< "" is one by the experiment's name
  std::string architecture{};
  std::int64_t memory_limit = 0;
  ProblemOptions problem{};
  SamplingOptions sampling{.budget_s = 2};
  RunOptions run{};
  OutputOptions output{};
};

int list_experiments(std::FILE* text) {
  lab::Table table({{"Experiment"}, {"What it asks"}});
  for (const lab::Experiment& each : lab::experiments())
    table.add_row({std::string(each.name), std::string(each.question)});
  fmt::print(text, "{}", table.render());
  return kDone;
}

lab::SamplingPolicy policy_of(const ExperimentOptions& options) {
  constexpr int kFewestToDecide = 6;  // what the interval of a median takes
  if (!options.quick) return options.sampling.policy();
  lab::SamplingPolicy quick = options.sampling.quick_policy();
  if (options.sampling.repeats == 0) quick.min_samples = kFewestToDecide;
  return quick;
}

lab::ExperimentSetup setup_of(const ExperimentOptions& options) {
  return {
      .device = options.run.device.value_or(Device{}),
      .choose_problem = [&options](const Problem& usual) { return options.problem.choose(usual); },
      .quick = options.quick,
      .options = options.run.plan(),
      .sampling = policy_of(options),
      .memory_limit = options.memory_limit,
      .architecture = options.architecture};
}

std::string json_lines(const std::vector<nlohmann::json>& records) {
  std::string text;
  for (const nlohmann::json& record : records) text += record.dump() + "\n";
  return text;
}

/// Everything into the folder, and every record where --json says.
void write_findings(OutputFolder& folder, lab::RecordWriter& writer, const std::string& text,
                    const lab::Findings& findings, const std::vector<nlohmann::json>& timed,
                    const std::vector<nlohmann::json>& results) {
  folder.write("summary.txt", text);
  folder.leave_out("records.jsonl");
  if (!timed.empty()) folder.write("records.jsonl", json_lines(timed));
  folder.write("results.jsonl", json_lines(results));
  for (const lab::ExperimentFile& file : findings.files) folder.write(file.name, file.text);
  for (const auto* records : {&timed, &results}) {
    for (const nlohmann::json& record : *records) writer.write(record);
  }
}

/// Of records in a file: those on the standard output are in nobody's way.
void require_apart(const std::string& records, const OutputFolder& folder) {
  if (records.empty() || records == "-") return;
  require_own_file("--json", records, "--out", folder.path());
  if (!folder.holds(records)) return;
  throw InvalidArgument("--json", fmt::format("'{}' lies in the folder of --out, which has every "
                                              "record already; leave it out, or name a file "
                                              "elsewhere",
                                              records));
}

int exit_status(const lab::Findings& findings) {
  for (const lab::Expectation& each : findings.expectations) {
    if (each.conclusion == lab::Conclusion::failed) return kCheckFailed;
  }
  return kDone;
}

int experiment(const ExperimentOptions& options) {
  std::FILE* text = options.output.text();
  if (options.list || options.name == "list") return list_experiments(text);
  if (options.name.empty()) {
    throw WrongUsage(
        "experiment needs a name; strobe experiment --list says which there are and what each "
        "asks");
  }
  const lab::Experiment& chosen = lab::find_experiment(options.name);
  options.run.require_device();
  const std::string path =
      options.folder.empty() ? fmt::format("experiment_{}", chosen.name) : options.folder;
  OutputFolder folder(path, options.output.force);
  require_apart(options.output.json, folder);
  lab::RecordWriter writer = options.output.records();
  lab::ExperimentSetup setup = setup_of(options);
  Progress progress(1);
  setup.progress = [&progress](const std::string& what) { progress.show(0, what); };
  const lab::Findings findings = chosen.run(setup);
  const auto timed = lab::timed_records(chosen, setup, findings);
  progress.clear();
  const std::string summary = lab::findings_text(chosen, findings);
  write_findings(folder, writer, summary, findings, timed,
                 lab::result_records(chosen, setup, findings));
  fmt::print(text, "{}Files: {}\n", summary, folder.path().string());
  return exit_status(findings);
}

}  // namespace

void add_experiment(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "experiment", "A question about attention: what was expected, and whether it held");
  auto o = std::make_shared<ExperimentOptions>();
  command->add_option("name", o->name, "Which experiment")->type_name("NAME");
  command->add_flag("--list", o->list, "Only say which experiments there are");
  command->add_option("--out", o->folder, "The folder to make; experiment_NAME if not given")
      ->type_name("FOLDER");
  add_byte_size(*command, "--memory-limit", o->memory_limit,
                "What it may take at once, 2GB for instance; four fifths of what is free if not "
                "given");
  command
      ->add_option(
          "--arch", o->architecture,
          "Compile for this architecture of GPUs, sm_90a for instance, where there is none")
      ->type_name("NAME");
  o->problem.add_to(*command);
  o->run.add_to(*command);
  o->sampling.add_to(*command);
  SamplingOptions::add_quick_to(*command, o->quick,
                                "A small size and few samples: done in seconds");
  o->sampling.add_pinning_to(*command);
  o->output.add_to(*command);
  command->get_option("--force")->description("Let --out and --json replace files that exist");
  command->footer(
      "Sizes are the experiment's own, smaller on the CPU; options for the problem change them.\n"
      "The exit status is 1 if something that was expected did not hold.\n\n"
      "Example:\n  strobe experiment fusion --quick");
  command->callback([&status, o] { status = experiment(*o); });
}

}  // namespace strobe::cli
