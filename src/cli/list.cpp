#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/run_options.h"
#include "report/table.h"
#include "strobe/registry.h"

namespace strobe::cli {
namespace {

struct ListOptions {
  std::string problem{};
  RunOptions run{};  ///< of which --device alone can be given
};

struct Feature {
  const char* title;
  const char* problem;  ///< a small problem that needs it
};

// One column each: an implementation has a feature if it supports the problem, in the dtype that it
// names or else in any.
constexpr Feature kFeatures[] = {
    {"fp32", "s8 fp32"},      {"fp16", "s8 fp16"},     {"bf16", "s8 bf16"},
    {"fp8", "s8 fp8e4m3"},    {"int8", "s8 int8"},     {"backward", "s8 bwd"},
    {"causal", "s8 causal"},  {"window", "s8 w2:1"},   {"GQA", "s8 h4 hk2"},
    {"varlen", "lq3,8"},      {"softcap", "s8 cap15"}, {"ALiBi", "s8 alibi"},
    {"bias", "s8 bias:bhqk"}, {"sinks", "s8 sinks"},   {"dropout", "s8 drop0.1"},
    {"dv≠d", "s8 d64 dv32"}};

Support support_of(const Implementation& implementation, const Feature& feature,
                   const PlanOptions& options) {
  Problem problem = Problem::parse(feature.problem);
  Support support = implementation.supports(problem, options);
  if (support || problem.dtype != DType::bf16 || feature.title == name_of(DType::bf16))
    return support;
  problem.dtype = DType::fp32;
  const Support in_fp32 = implementation.supports(problem, options);
  return in_fp32 ? in_fp32 : support;
}

/// Where an implementation is looked at: on the device that was asked for, or the first of its
/// kind.
std::string device_text(const Implementation& implementation, const PlanOptions& options) {
  return to_string({.kind = implementation.device(), .index = options.device});
}

void show_features(const RunOptions& run) {
  const PlanOptions options = run.plan();
  std::vector<lab::Table::Column> columns{{"Implementation"}, {"Device"}};
  for (const Feature& feature : kFeatures) columns.push_back({feature.title});
  lab::Table table(columns);
  std::string absent;
  for (const Implementation* implementation : run.all()) {
    std::vector<std::string> row{full_name(*implementation), device_text(*implementation, options)};
    Support support;
    bool anything = false;
    for (const Feature& feature : kFeatures) {
      support = support_of(*implementation, feature, options);
      anything = anything || support;
      row.push_back(support ? "yes" : "-");
    }
    table.add_row(row);
    if (anything) continue;
    absent += fmt::format("{} cannot run here; it lacks {}\n", full_name(*implementation),
                          fmt::join(support.missing, "; "));
  }
  fmt::print("{}{}", table.render(), absent);
}

/// Who supports the problem, and why the others do not. True if somebody does.
bool show_support(const Problem& problem, const RunOptions& run) {
  const PlanOptions options = run.plan();
  lab::Table table({{"Implementation"}, {"Device"}, {"Supports it"}, {"Kernel"}, {"Missing"}});
  bool anybody = false;
  for (const Implementation* implementation : run.all()) {
    const Support support = implementation->supports(problem, options);
    anybody = anybody || support;
    table.add_row({full_name(*implementation), device_text(*implementation, options),
                   support ? "yes" : "no", support ? support.kernel : "",
                   fmt::format("{}", fmt::join(support.missing, "; "))});
  }
  fmt::print("{}\n\n{}", problem.text(), table.render());
  return anybody;
}

/// Implementations and their features, or who supports a problem and why the others do not.
int list(const ListOptions& options) {
  if (options.problem.empty()) {
    show_features(options.run);
    return kDone;
  }
  if (show_support(Problem::parse(options.problem), options.run)) return kDone;
  fmt::print(stderr, "strobe: no implementation in this build supports that problem\n");
  return kNotPossible;
}

}  // namespace

void add_list(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("list", "Implementations and their features");
  auto options = std::make_shared<ListOptions>();
  add_device(*command, options->run.device);
  command
      ->add_option("--problem", options->problem,
                   "Say who supports this problem and why the others do not")
      ->type_name("TEXT");
  command->footer("Example:\n  strobe list --problem \"b2 s4096 h16 hk4 d128 bf16 causal bwd\"");
  command->callback([&status, options] { status = list(*options); });
}

}  // namespace strobe::cli
