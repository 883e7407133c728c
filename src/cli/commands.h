#pragma once

namespace CLI {
class App;
}

// The subcommands. Each lives in the file of its name, which declares its options and does its work
// once they are read, setting the exit status.
namespace strobe::cli {

/// What the program's exit status means.
enum ExitStatus : int {
  kDone = 0,
  kCheckFailed = 1,  ///< inaccurate, misbehaving, slower than it was
  kWrongUsage = 2,
  kNotPossible = 3  ///< on this machine
};

void add_info(CLI::App& program, int& status);
void add_list(CLI::App& program, int& status);
void add_verify(CLI::App& program, int& status);
void add_bench(CLI::App& program, int& status);
void add_compare(CLI::App& program, int& status);
void add_profile(CLI::App& program, int& status);
void add_experiment(CLI::App& program, int& status);
void add_watch(CLI::App& program, int& status);
void add_sweep(CLI::App& program, int& status);
void add_baseline(CLI::App& program, int& status);
void add_report(CLI::App& program, int& status);
void add_tune(CLI::App& program, int& status);
void add_warmup(CLI::App& program, int& status);
void add_cache(CLI::App& program, int& status);

}  // namespace strobe::cli
