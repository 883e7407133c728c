#include "cli/external_tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is in no other

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/child_process.h"
#include "report/programs.h"
#include "strobe/error.h"
#include "verify/execution.h"

namespace strobe::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr const char* kNsysReport = "flash_attn_nsys.nsys-rep";
constexpr const char* kNsysStats = "nsys_stats.txt";
constexpr const char* kNcuReport = "flash_attn_ncu_full.ncu-rep";
constexpr const char* kNcuMemory = "ncu_memory_metrics.txt";
constexpr const char* kNcuCompute = "ncu_compute_metrics.txt";
constexpr double kProfileSeconds = 20;

/// For each step of a profiler.
double limit_seconds() {
  const char* const set = std::getenv("STROBE_TOOL_SECONDS");
  const double seconds = set == nullptr ? 0 : std::atof(set);
  return seconds > 0 ? seconds : kProfileSeconds;
}

/// A folder of its own, gone with everything in it afterwards.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / "strobe-profile-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error(fmt::format("no folder can be made in {}; TMPDIR names another place",
                              fs::temp_directory_path().string()));
  }
  ~ScratchFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

/// This program; where it is a part of another, the one on the PATH. "" if there is none.
std::string own_program() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  return self.filename() == "strobe" ? self.string() : lab::find_program("strobe");
}

/// A process that calls each pass so often and does nothing else on the GPU.
Words calls(const BenchOptions& options, const BenchSubject& subject, int count) {
  Problem problem = subject.problem;
  problem.pass = Pass::forward;
  const RunOptions& run = options.run;
  const Device device = lab::device_of(*subject.implementation, run.plan());
  Words words{own_program(),
              "bench",
              "--calls",
              std::to_string(count),
              "--problem",
              problem.text(),
              "--impl",
              full_name(*subject.implementation),
              "--device",
              to_string(device),
              "--reference",
              run.reference,
              "--pass",
              subject.passes.size() > 1 ? "both" : std::string(name_of(subject.passes.front()))};
  if (run.threads > 0) words.insert(words.end(), {"--threads", std::to_string(run.threads)});
  if (run.tf32) words.emplace_back("--tf32");
  if (run.deterministic) words.emplace_back("--deterministic");
  if (!run.variant.empty()) words.insert(words.end(), {"--variant", run.variant});
  return words;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The line that says most: the first error, or else the last line.
std::string telling_line(const std::string& output) {
  std::istringstream lines(output);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("ERROR") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it says nothing" : last;
}

/// A step did not work.
class ToolFailed : public Error {
 public:
  using Error::Error;
};

std::string run_step(const Words& command) {
  const double seconds = limit_seconds();
  const ChildOutcome outcome = run_child(command, seconds);
  if (outcome.timed_out)
    throw ToolFailed(fmt::format(
        "was ended after {:g} s: give it longer with STROBE_TOOL_SECONDS, or try `{}` by hand",
        seconds, fmt::join(command, " ")));
  if (outcome.status != 0)
    throw ToolFailed(fmt::format("failed with status {}, \"{}\": try `{}` by hand", outcome.status,
                                 telling_line(outcome.output), fmt::join(command, " ")));
  return outcome.output;
}

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The report that a profiler was told to leave.
std::string report(const ScratchFolder& scratch, const char* name, const std::string& output) {
  std::string bytes = contents(scratch.file(name));
  if (bytes.empty()) throw ToolFailed(fmt::format("left no report: \"{}\"", telling_line(output)));
  return bytes;
}

std::map<std::string, std::string> run_nsys(const BenchOptions& options,
                                            const BenchSubject& subject) {
  constexpr int kCalls = 10;
  const ScratchFolder scratch;
  const std::string path = scratch.file(kNsysReport);
  const std::string output =
      run_step(joined({"nsys", "profile", "--output", path, "--force-overwrite", "true", "--trace",
                       "cuda,nvtx,osrt", "--sample", "none", "--cpuctxsw", "none"},
                      calls(options, subject, kCalls)));
  std::string bytes = report(scratch, kNsysReport, output);
  return {{kNsysReport, std::move(bytes)},
          {kNsysStats,
           run_step({"nsys", "stats", "--force-export", "true", "--report",
                     "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_api_sum,nvtx_sum", path})}};
}

/// Kernels are run again and again to count everything, so one call is enough.
std::map<std::string, std::string> run_ncu(const BenchOptions& options,
                                           const BenchSubject& subject) {
  constexpr const char* kMostKernels = "8";
  const ScratchFolder scratch;
  const std::string path = scratch.file(kNcuReport);
  const std::string output = run_step(joined(
      {"ncu", "--set", "full", "--clock-control", "none", "--target-processes", "application-only",
       "--launch-count", kMostKernels, "--force-overwrite", "--export", path},
      calls(options, subject, 1)));
  std::string bytes = report(scratch, kNcuReport, output);
  const std::string details = run_step({"ncu", "--import", path, "--page", "details"});
  return {{kNcuReport, std::move(bytes)},
          {kNcuMemory, sections_of(details, {"Memory", "Speed Of Light"})},
          {kNcuCompute, sections_of(details, {"Compute", "Speed Of Light", "Occupancy", "Warp",
                                              "Scheduler", "Launch", "Instruction"})}};
}

struct Tool {
  const char* name;
  const char* adds;
  std::map<std::string, std::string> (*run)(const BenchOptions&, const BenchSubject&);
  std::vector<std::string> files;
};

const std::vector<Tool>& known_tools() {
  static const std::vector<Tool> all{
      {"nsys",
       "the time line of the driver and of every kernel on the GPU",
       run_nsys,
       {kNsysReport, kNsysStats}},
      {"ncu",
       "all that Nsight Compute counts of each kernel: memory, caches, units, occupancy, stalls",
       run_ncu,
       {kNcuReport, kNcuMemory, kNcuCompute}}};
  return all;
}

/// Why it is not even tried; "" if it is.
std::string obstacle(const Tool& tool, const BenchSubject& subject) {
  if (subject.implementation->device() == Device::Kind::cpu)
    return "it looks at GPUs, and this ran on the CPU";
  if (lab::find_program(tool.name).empty()) return "not on the PATH here";
  if (own_program().empty())
    return "not run: it takes the program strobe, which is not on the PATH here";
  return "";
}

}  // namespace

std::vector<std::string> tool_files() {
  std::vector<std::string> all;
  for (const Tool& tool : known_tools())
    all.insert(all.end(), tool.files.begin(), tool.files.end());
  return all;
}

ToolResults run_tools(const BenchOptions& options, const BenchSubject& subject) {
  ToolResults results;
  for (const Tool& tool : known_tools()) {
    lab::ExternalTool& told = results.tools.emplace_back();
    told = {.name = tool.name, .adds = tool.adds, .trouble = obstacle(tool, subject)};
    if (!told.trouble.empty()) continue;
    try {
      for (auto& [name, text] : tool.run(options, subject)) {
        told.files.push_back(name);
        results.files[name] = std::move(text);
      }
    } catch (const Error& error) {
      told.trouble = error.what();
    }
  }
  return results;
}

std::string sections_of(const std::string& details, const std::vector<std::string>& words) {
  constexpr std::string_view kTitle = "Section: ";
  constexpr std::size_t kSectionIndent = 4;
  std::string kept;
  bool keep = true;
  std::istringstream lines(details);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t title = line.find(kTitle);
    const std::size_t indent = line.find_first_not_of(' ');
    if (title != std::string::npos) {
      keep = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return line.find(word, title + kTitle.size()) != std::string::npos;
      });
    } else if (indent < kSectionIndent) {  // no empty line
      keep = true;                         // the kernel that the next sections are of
    }
    if (keep) kept += line + "\n";
  }
  return kept;
}

}  // namespace strobe::cli
