#include "core/cores.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe {
namespace {

using Variables = std::function<const char*(const char*)>;

std::optional<int> to_number(std::string_view text, int least) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least) return std::nullopt;
  return number;
}

std::string_view value_of(const Variables& variable, const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? "" : value;
}

/// Ranks of a parallel program that share the node, and which of them this one is.
struct Ranks {
  int count = 1;
  int mine = 0;
  std::string_view launcher{};
};

/// How a launcher tells a rank.
struct Launcher {
  std::string_view name;
  const char* count;
  const char* mine;
};

// Of the process manager of the MPI library first: it may itself have been started by Slurm, one
// on each node, and Slurm's variables then speak of those.
constexpr std::array kLaunchers = {
    Launcher{"Open MPI", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    Launcher{"MVAPICH", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    Launcher{"MPICH or Intel MPI", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    Launcher{"PMI", "PMI_LOCAL_SIZE", "PMI_LOCAL_RANK"},
    Launcher{"torchrun", "LOCAL_WORLD_SIZE", "LOCAL_RANK"}};

/// Entry `node` of what Slurm writes as "4(x2),3": 4, 4, 3.
std::optional<int> tasks_on_node(std::string_view text, int node) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const std::size_t times = entry.find("(x");
    const auto tasks = to_number(entry.substr(0, times), 1);
    std::optional<int> nodes = 1;
    if (times != std::string_view::npos) {
      if (entry.back() != ')') return std::nullopt;
      nodes = to_number(entry.substr(times + 2, entry.size() - times - 3), 1);
    }
    if (!tasks || !nodes) return std::nullopt;
    if (node < *nodes) return tasks;
    node -= *nodes;
  }
  return std::nullopt;
}

/// The step's variables alone: those of the job are also set in a batch script, of which there is
/// one, and where it was asked for rather than given.
std::optional<int> slurm_tasks(const Variables& variable) {
  const auto node = to_number(value_of(variable, "SLURM_NODEID"), 0);
  if (!node) return std::nullopt;
  return tasks_on_node(value_of(variable, "SLURM_STEP_TASKS_PER_NODE"), *node);
}

/// What makes no sense is passed over: these variables are not ours to complain about.
Ranks local_ranks(const Variables& variable) {
  const auto valid = [](std::optional<int> count, std::optional<int> mine) {
    return count && mine && *mine < *count;
  };
  for (const Launcher& launcher : kLaunchers) {
    const auto count = to_number(value_of(variable, launcher.count), 1);
    const auto mine = to_number(value_of(variable, launcher.mine), 0);
    if (valid(count, mine)) return {*count, *mine, launcher.name};
  }
  const auto count = slurm_tasks(variable);
  const auto mine = to_number(value_of(variable, "SLURM_LOCALID"), 0);
  if (valid(count, mine)) return {*count, *mine, "Slurm"};
  return {};
}

std::string counted(int count, std::string_view what) {
  return concat(count, " ", what, count == 1 ? "" : "s");
}

/// "8" of "8,2": threads of the outermost level.
std::optional<int> openmp_threads(const Variables& variable) {
  const std::string_view text = value_of(variable, "OMP_NUM_THREADS");
  return to_number(text.substr(0, text.find(',')), 1);
}

}  // namespace

CoreShare share_of_cores(const CoreFacts& facts) {
  const Ranks ranks = local_ranks(facts.variable);
  const int present = std::max(facts.present, facts.allowed);
  const int part = std::max(1, present / ranks.count);
  CoreShare share{.cores = facts.allowed, .own = facts.allowed};
  if (facts.allowed < present) {
    share.reason = concat("the affinity mask has ", facts.allowed, " of ", present, " cores");
  } else {
    share.reason = concat("all ", counted(present, "core"));
  }
  // A mask that several ranks share (a socket, by default, under Open MPI) is no part of one rank.
  if (part < facts.allowed) {
    share.cores = share.own = part;
    share.first = ranks.mine * part % facts.allowed;
    share.reason = concat(counted(present, "core"), " for ", ranks.count, " ranks on this node (",
                          ranks.launcher, ")");
  }
  if (facts.quota) {
    const int granted = std::max(1, static_cast<int>(std::ceil(*facts.quota)) / ranks.count);
    if (granted < share.cores) {
      share.cores = granted;
      share.reason = concat("the CPU quota of the control group is ", *facts.quota);
      if (ranks.count > 1) share.reason += concat(", for ", ranks.count, " ranks");
    }
  }
  return share;
}

ThreadChoice choose_threads(const CoreFacts& facts) {
  const std::string_view asked = value_of(facts.variable, "STROBE_THREADS");
  if (!asked.empty()) {
    const auto threads = to_number(asked, 1);
    if (!threads) {
      throw InvalidArgument("STROBE_THREADS",
                            concat("is '", asked, "', allowed is a positive number"));
    }
    return {*threads, "STROBE_THREADS"};
  }
  CoreShare share = share_of_cores(facts);
  const auto limit = openmp_threads(facts.variable);
  if (limit && *limit < share.cores) return {*limit, "OMP_NUM_THREADS"};
  return {share.cores, std::move(share.reason)};
}

int core_of_slot(int slot, const CoreShare& share, int allowed) {
  const int within = (slot % share.own + share.own) % share.own;
  return (share.first + within) % allowed;
}

std::optional<cpu_set_t> affinity_of(pid_t thread) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(thread, sizeof cores, &cores) != 0) return std::nullopt;
  return cores;
}

std::optional<cpu_set_t> affinity_of_threads(const std::filesystem::path& threads) {
  std::optional<cpu_set_t> cores = affinity_of(0);
  const auto add = [&cores](pid_t thread) {
    const auto more = affinity_of(thread);  // nothing of one that has ended meanwhile
    if (more && cores) CPU_OR(&*cores, &*cores, &*more);
  };
  add(getpid());
  std::error_code error;
  std::filesystem::directory_iterator entry(threads, error);
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (const auto number = to_number(entry->path().filename().native(), 1)) add(*number);
  }
  return cores;
}

const std::optional<cpu_set_t>& allowed_cores() {
  static const std::optional<cpu_set_t> cores = affinity_of_threads("/proc/self/task");
  return cores;
}

const CoreShare& core_share() {
  static const CoreShare share = share_of_cores(core_facts());
  return share;
}

}  // namespace strobe
