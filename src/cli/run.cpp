// Reads the command line and turns errors into a sentence and an exit status.
#include "cli/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/commands.h"
#include "report/record.h"
#include "strobe/cuda.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

int complain(const std::string& what, int status) {
  fmt::print(stderr, "strobe: {}\n", what);
  return status;
}

/// What the parser has against the arguments, with where to look.
std::string explain(const CLI::App& program, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments) {
  const auto used = program.get_subcommands();
  const std::string first = arguments.empty() ? "-" : arguments.front();
  if (used.empty() && !first.starts_with('-')) {
    std::vector<std::string> names;
    for (const CLI::App* command : program.get_subcommands({}))
      names.push_back(command->get_name());
    return fmt::format("'{}' is not a subcommand; there are {}", first, fmt::join(names, ", "));
  }
  const std::string command = used.empty() ? "" : " " + used.front()->get_name();
  return fmt::format("{}; see strobe{} --help", error.what(), command);
}

/// 0 if all that was printed got where it should: a full disk may show only now.
int finish_printing() {
  const std::string reason = std::fflush(stdout) == 0 ? "" : std::strerror(errno);
  if (reason.empty() && std::ferror(stdout) == 0) return kDone;
  return complain(
      fmt::format("the standard output cannot be written{}{}", reason.empty() ? "" : ": ", reason),
      kNotPossible);
}

/// As the parser takes them: the last first.
std::vector<std::string> reversed(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace

int run(const Invocation& invocation) {
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
  add_profile(program, status);
  add_experiment(program, status);
  add_watch(program, status);
  add_sweep(program, status);
  add_baseline(program, status);
  add_report(program, status);
  add_tune(program, status);
  add_warmup(program, status);
  add_cache(program, status);
  lab::remember_command(invocation.program, invocation.arguments);
  try {
    program.parse(reversed(invocation.arguments));
  } catch (const CLI::Success& request) {  // --help, --version
    return program.exit(request);
  } catch (const CLI::ParseError& error) {
    throw WrongUsage(explain(program, error, invocation.arguments));
  }
  return status;
}

int run_and_report(const Invocation& invocation) {
  try {
    const int status = run(invocation);
    for (const std::string& warning : cuda_warnings()) complain(warning, status);
    const int printed = finish_printing();
    return status != kDone ? status : printed;
  } catch (const WrongUsage& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const InvalidArgument& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const std::exception& error) {  // Unsupported, OutOfMemory and what the system throws
    return complain(error.what(), kNotPossible);
  }
}

}  // namespace strobe::cli
