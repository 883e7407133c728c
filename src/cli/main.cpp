// strobe: verifies, times and compares attention implementations. This file reads the command
// line and turns errors into a sentence and an exit status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

void add_output_options(CLI::App& command, OutputOptions& options) {
  command
      .add_option("--json", options.json,
                  "Also write one JSON record a line to FILE, or - for the standard output")
      ->type_name("FILE");
  command.add_flag("--force", options.force, "Let --json replace a file that exists");
}

void add_info(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("info", "This machine as strobe sees it, and what it can run");
  command->footer("Example:\n  strobe info");
  command->callback([&status] { status = info(); });
}

void add_list(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("list", "Implementations and their features");
  auto o = std::make_shared<ListOptions>();
  command
      ->add_option("--problem", o->problem,
                   "Say who supports this problem and why the others do not")
      ->type_name("TEXT");
  command->footer("Example:\n  strobe list --problem \"b2 s4096 h16 hk4 d128 bf16 causal bwd\"");
  command->callback([&status, o] { status = list(*o); });
}

/// What the inputs of a single problem are; a grid brings its own.
void add_input_options(CLI::App& command, lab::Inputs& inputs, CLI::Option* grid) {
  command.add_option("--inputs-scale", inputs.scale, "Factor on q, k and v")
      ->capture_default_str()
      ->excludes(grid);
  command.add_option("--seed", inputs.seed, "Seed of the inputs")
      ->capture_default_str()
      ->excludes(grid);
  const auto choice = [&](const char* flag, const auto& read, const auto& names, const char* help) {
    command.add_option_function<std::string>(flag, read, help)
        ->check(CLI::IsMember(names))
        ->default_str(names.front())
        ->excludes(grid);
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
      ->excludes(grid);
}

void add_verify(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "verify",
      "Accuracy against the float64 oracle: output, dQ, dK, dV, and the promises of a run");
  auto o = std::make_shared<VerifyOptions>();
  CLI::Option* grid =
      command->add_option("--grid", o->grid, "Many cases: quick (the default) or full")
          ->check(CLI::IsMember({"quick", "full"}));
  command
      ->add_option("--share", o->share,
                   "The K-th of N parts of the grid, to run parts side by side")
      ->type_name("K/N");
  command->add_option("--problem", o->problem, "One problem by its text form")
      ->type_name("TEXT")
      ->excludes(grid);
  command
      ->add_option("--impl", o->implementations,
                   "Implementations, with commas; all but the oracle and the baseline by default")
      ->delimiter(',')
      ->type_name("NAME");
  command->add_option("--pass", o->pass, "Which pass to check")
      ->check(CLI::IsMember({"forward", "backward", "both"}))
      ->capture_default_str();
  add_input_options(*command, o->inputs, grid);
  add_output_options(*command, o->output);
  command->footer("Example:\n  strobe verify --problem \"b2 s256 h4 hk2 d64 bf16 causal\"");
  command->callback([&status, o] { status = verify(*o); });
}

void add_bench(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("bench", "Time of one problem: forward, and backward");
  auto o = std::make_shared<BenchOptions>();
  CLI::Option* problem =
      command->add_option("--problem", o->problem, "The problem by its text form")
          ->type_name("TEXT");
  const auto size = [&](const char* flag, auto& value, const char* help) {
    command->add_option(flag, value, help)
        ->excludes(problem)
        ->type_name("N")
        ->capture_default_str();
  };
  size("--batch", o->batch, "Sequences");
  size("--seqlen", o->seqlen, "Length of a sequence");
  size("--nheads", o->heads, "Query heads");
  size("--headdim", o->dim, "Head dimension");
  size("--kv-heads", o->heads_k, "Key and value heads; as many as query heads if not given");
  size("--seqlen-k", o->seqlen_k, "Length of keys and values; as --seqlen if not given");
  command->add_flag("--causal", o->causal, "Causal mask")->excludes(problem);
  command->add_option("--dtype", o->dtype, "fp32, fp16 or bf16")
      ->excludes(problem)
      ->capture_default_str();
  command->add_option("--repeats", o->repeats, "Timed runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--no-grad", o->no_grad, "Forward pass only");
  command->add_option("--impl", o->implementation, "Implementation; the best one if not given")
      ->type_name("NAME");
  command->add_option("--threads", o->threads, "CPU threads; all cores if not given")
      ->check(CLI::Range(1, 65536));
  add_output_options(*command, o->output);
  command->footer(
      "Example:\n  strobe bench --batch 1 --seqlen 512 --nheads 4 --headdim 64 --causal");
  command->callback([&status, o] { status = bench(*o); });
}

void add_compare(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "compare", "Several implementations on the same problems: time, memory, error, the winner");
  auto o = std::make_shared<CompareOptions>();
  command->add_flag("--quick", o->quick, "Few samples: done in seconds");
  command
      ->add_option("--problem", o->problems,
                   "A problem by its text form, may be repeated; a representative set by default")
      ->type_name("TEXT");
  command
      ->add_option("--impl", o->implementations,
                   "Implementations, with commas; speed-ups are over the last one that runs")
      ->delimiter(',')
      ->type_name("NAME")
      ->capture_default_str();
  add_output_options(*command, o->output);
  command->footer("Example:\n  strobe compare --quick --problem \"b1 s512 h4 d64 fp32 causal\"");
  command->callback([&status, o] { status = compare(*o); });
}

int complain(const std::string& what, int status) {
  fmt::print(stderr, "strobe: {}\n", what);
  return status;
}

/// What the parser has against the arguments, with where to look.
std::string explain(const CLI::App& program, const CLI::ParseError& error, const char* first) {
  const auto used = program.get_subcommands();
  if (used.empty() && first != nullptr && first[0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({}))
      names.push_back(command->get_name());
    return fmt::format("'{}' is not a subcommand; there are {}", first, fmt::join(names, ", "));
  }
  const std::string command = used.empty() ? "" : " " + used.front()->get_name();
  return fmt::format("{}; see strobe{} --help", error.what(), command);
}

/// Parses and runs. A subcommand that fails by exception is reported by the caller.
int run(int argc, char** argv) {
  CLI::App program{
      "Computes attention, and proves it: verifies, times and compares implementations."};
  program.name("strobe");
  program.set_version_flag("--version", fmt::format("strobe {}", version()));
  program.require_subcommand(1);
  program.footer(
      "Example:\n  strobe compare --quick\n\n"
      "Exit status: 0 done, 1 a check failed, 2 wrong usage, 3 not possible on this machine.");
  int status = kDone;
  add_info(program, status);
  add_list(program, status);
  add_verify(program, status);
  add_bench(program, status);
  add_compare(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return program.exit(request);
  } catch (const CLI::ParseError& error) {
    return complain(explain(program, error, argc > 1 ? argv[1] : nullptr), kWrongUsage);
  }
  return status;
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const InvalidArgument& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const std::exception& error) {  // Unsupported, OutOfMemory and what the system throws
    return complain(error.what(), kNotPossible);
  }
}

}  // namespace
}  // namespace strobe::cli

int main(int argc, char** argv) {
  return strobe::cli::run_and_report(argc, argv);
}
