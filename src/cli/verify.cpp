#include "verify/verify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/options.h"
#include "cli/run_options.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/grid.h"

namespace strobe::cli {
namespace {

struct VerifyOptions {
  std::string grid{};
  std::string share = "1/1";  ///< which part of the grid, of how many
  std::string problem{};
  std::string pass = "both";
  std::vector<std::string> implementations{};
  lab::Inputs inputs{};
  RunOptions run{};
  OutputOptions output{};
};

/// What was asked for; else everything that does any of the cases, but the two that the others are
/// judged by.
Implementations choose_implementations(const VerifyOptions& options,
                                       const std::vector<lab::Case>& cases) {
  if (!options.implementations.empty()) return options.run.find(options.implementations);
  std::vector<Problem> problems;
  for (const lab::Case& what : cases) problems.push_back(what.problem);
  Implementations all = options.run.all();
  std::erase_if(all, [](const Implementation* each) {
    return each->name() == "oracle" || each->name() == lab::kBaselineName;
  });
  return useful_among(all, problems, options.run.plan());
}

/// A single problem is checked in both passes by its backward pass, which runs the forward pass
/// first and checks it; the cases of a grid have their own passes.
void choose_pass(lab::Case& what, const std::string& pass, bool from_grid) {
  if (pass == "both" && from_grid) return;
  what.problem.pass = pass == "forward" ? Pass::forward : Pass::backward;
}

/// Every N-th case from the K-th on, so that all parts take about equally long.
std::vector<lab::Case> take_share(const std::vector<lab::Case>& cases, const std::string& share) {
  std::size_t part = 0;
  std::size_t parts = 0;
  int length = 0;
  if (std::sscanf(share.c_str(), "%zu/%zu%n", &part, &parts, &length) != 2 ||
      static_cast<std::size_t>(length) != share.size() || part < 1 || part > parts) {
    throw InvalidArgument(
        "--share", fmt::format("is '{}', allowed is K/N with 1 <= K <= N, such as 2/8", share));
  }
  if (part > cases.size()) {
    throw InvalidArgument(
        "--share", fmt::format("is '{}', which holds none of the grid's {} cases, allowed is "
                               "a part up to {}",
                               share, cases.size(), cases.size()));
  }
  std::vector<lab::Case> taken;
  for (std::size_t i = part - 1; i < cases.size(); i += parts) taken.push_back(cases[i]);
  return taken;
}

std::vector<lab::Case> choose_cases(const VerifyOptions& options) {
  const bool from_grid = options.problem.empty();
  std::vector<lab::Case> cases;
  if (!from_grid) {
    cases = {{Problem::parse(options.problem), options.inputs}};
  } else {
    cases =
        take_share(options.grid == "full" ? lab::full_grid() : lab::quick_grid(), options.share);
  }
  for (lab::Case& what : cases) choose_pass(what, options.pass, from_grid);
  return cases;
}

/// The lines that users of accuracy scripts know: outputs first, then the gradients' largest and
/// mean differences.
void print_differences(std::FILE* text, const lab::Report& report) {
  const auto print_gradients = [&](const char* which, double lab::Comparison::*error) {
    for (const lab::TensorReport& tensor : report.tensors) {
      if (tensor.tensor == "out" || tensor.tensor == "lse") continue;
      fmt::print(text, "{} {} diff: {}\n", tensor.label, which, tensor.comparison.*error);
    }
  };
  for (const lab::TensorReport& tensor : report.tensors) {
    if (tensor.tensor != "out") continue;
    fmt::print(text, "Output max diff: {}\nOutput mean diff: {}\n", tensor.comparison.max_error,
               tensor.comparison.mean_error);
  }
  print_gradients("max", &lab::Comparison::max_error);
  print_gradients("mean", &lab::Comparison::mean_error);
}

void print_bounds(std::FILE* text, const lab::Report& report) {
  lab::Table table({{"Tensor"},
                    {"Max error", lab::Align::right},
                    {"Allowed", lab::Align::right},
                    {"Mean error", lab::Align::right},
                    {"Allowed", lab::Align::right},
                    {"Worst at"},
                    {"Result"}});
  for (const lab::TensorReport& tensor : report.tensors) {
    const lab::Comparison& c = tensor.comparison;
    table.add_row({std::string(tensor.label), lab::error_text(c.max_error),
                   lab::error_text(c.bound), lab::error_text(c.mean_error),
                   lab::error_text(c.mean_bound), tensor.worst_index, c.pass() ? "pass" : "FAIL"});
  }
  fmt::print(text, "\n{}\n", table.render());
}

void print_one(std::FILE* text, const lab::Case& what, const lab::Report& report) {
  fmt::print(text, "Problem: {}\n", what.name());
  fmt::print(text, "Implementation: {} ({})\n", report.implementation,
             lab::tuning_text(report.tuning));
  print_differences(text, report);
  if (!report.tensors.empty()) print_bounds(text, report);
  const char* const verdict = report.status == lab::Status::ok       ? "PASS"
                              : report.status == lab::Status::failed ? "FAIL"
                                                                     : "NOT CHECKED";
  fmt::print(text, "{}{}{}\n\n", verdict, report.reason.empty() ? "" : ": ", report.reason);
}

struct Tally {
  std::size_t passed = 0, failed = 0, not_possible = 0;

  void add(lab::Status status) {
    if (status == lab::Status::ok)
      ++passed;
    else if (status == lab::Status::failed)
      ++failed;
    else
      ++not_possible;
  }

  int exit_status() const {
    if (failed > 0) return kCheckFailed;
    return passed == 0 && not_possible > 0 ? kNotPossible : kDone;
  }
};

void print_failure(std::FILE* text, const lab::Case& what, const lab::Report& report) {
  fmt::print(text, "{} {} on {}\n  {}\n", report.status == lab::Status::failed ? "FAIL" : "SKIP",
             report.implementation, what.name(), report.reason);
  const std::string command =
      what.command(Registry::instance().find(report.implementation), report.options);
  if (!command.empty()) fmt::print(text, "  again: {}\n", command);
}

/// Accuracy of implementations against the oracle, on one problem or a grid of them.
int verify(const VerifyOptions& options) {
  options.run.require_device();
  const std::vector<lab::Case> cases = choose_cases(options);
  const Implementations implementations = choose_implementations(options, cases);
  if (!options.run.variant.empty()) {  // which is the caller's mistake if it is wrong
    for (const Implementation* each : implementations)
      each->plan(cases.front().problem, options.run.plan());
  }
  lab::RecordWriter records = options.output.records();
  std::FILE* text = options.output.text();
  Progress progress(cases.size());
  Tally tally;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    progress.show(i, cases[i].name());
    for (const lab::Report& report : lab::verify(cases[i], implementations, options.run.plan())) {
      tally.add(report.status);
      records.write(cases[i], report);
      if (cases.size() == 1) {
        progress.clear();
        print_one(text, cases[i], report);
      } else if (report.status != lab::Status::ok) {
        progress.clear();
        print_failure(text, cases[i], report);
      }
    }
  }
  progress.clear();
  if (cases.size() > 1) {
    fmt::print(text, "{} cases, {} checks: {} passed, {} failed, {} not possible\n{}\n",
               cases.size(), tally.passed + tally.failed + tally.not_possible, tally.passed,
               tally.failed, tally.not_possible, tally.failed == 0 ? "PASS" : "FAIL");
  }
  return tally.exit_status();
}

/// What the inputs of a single problem are; a grid brings its own.
void add_input_options(CLI::App& command, lab::Inputs& inputs, CLI::Option* problem) {
  command.add_option("--inputs-scale", inputs.scale, "Factor on q, k and v")
      ->capture_default_str()
      ->needs(problem);
  command.add_option("--seed", inputs.seed, "Seed of the inputs")
      ->capture_default_str()
      ->needs(problem);
  const auto choice = [&](const char* flag, const auto& read, const auto& names, const char* help) {
    command.add_option_function<std::string>(flag, read, help)
        ->check(CLI::IsMember(names))
        ->default_str(names.front())
        ->needs(problem);
  };
  choice(
      "--storage", [&](const std::string& name) { inputs.storage = lab::parse_storage(name); },
      lab::storage_names(), "How the tensors lie in memory");
  choice(
      "--distribution",
      [&](const std::string& name) { inputs.distribution = lab::parse_distribution(name); },
      lab::distribution_names(), "What q and k hold");
  command
      .add_flag("--masked-bias", inputs.masked_bias,
                "Let a third of the bias, and whole rows, be minus infinity")
      ->needs(problem);
}

}  // namespace

void add_verify(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "verify",
      "Accuracy against the float64 oracle: output, dQ, dK, dV, and the promises of a run");
  auto o = std::make_shared<VerifyOptions>();
  CLI::Option* grid =
      command->add_option("--grid", o->grid, "Many cases: quick (the default) or full")
          ->check(CLI::IsMember({"quick", "full"}));
  CLI::Option* const share =
      command
          ->add_option("--share", o->share,
                       "The K-th of N parts of the grid, to run parts side by side")
          ->type_name("K/N");
  CLI::Option* const problem =
      command->add_option("--problem", o->problem, "One problem by its text form")
          ->type_name("TEXT")
          ->excludes(grid)
          ->excludes(share);
  command
      ->add_option(
          "--impl", o->implementations,
          "Implementations, with commas; by default all that can, but the oracle and the baseline")
      ->delimiter(',')
      ->type_name("NAME");
  command->add_option("--pass", o->pass, "Which pass to check")
      ->check(CLI::IsMember({"forward", "backward", "both"}))
      ->capture_default_str();
  add_input_options(*command, o->inputs, problem);
  o->run.add_to(*command);
  o->run.add_variant_to(*command)->needs(problem);
  o->output.add_to(*command);
  command->footer("Example:\n  strobe verify --problem \"b2 s256 h4 hk2 d64 bf16 causal\"");
  command->callback([&status, o] { status = verify(*o); });
}

}  // namespace strobe::cli
