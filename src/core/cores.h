#pragma once

#include <sched.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

// How many threads this process should have, and on which cores.
namespace strobe {

/// What that is decided from.
struct CoreFacts {
  std::function<const char*(const char*)> variable;  ///< of the environment; null if not set
  int allowed = 1;                                   ///< cores in the affinity mask of the process
  int present = 1;                                   ///< cores of the machine, or of the container
  std::optional<double> quota{};  ///< cores' worth of time that the control group grants
};

/// The part of the machine that is this process's own.
struct CoreShare {
  int cores = 1;         ///< that it can keep busy
  std::string reason{};  ///< what set that number
  int first = 0;         ///< place among the allowed cores where its own begin
  int own = 1;           ///< how many those are; more than `cores` if a quota is what counts
};

/// The allowed cores; where other ranks of a parallel program run on the node, as its launcher
/// tells, no more than an equal part of those present; and no more than the quota.
CoreShare share_of_cores(const CoreFacts& facts);

struct ThreadChoice {
  int threads = 1;
  std::string reason{};
};

/// STROBE_THREADS if set, else the share of cores, or OMP_NUM_THREADS if that is less. Throws
/// InvalidArgument if STROBE_THREADS is not a positive number.
ThreadChoice choose_threads(const CoreFacts& facts);

/// Place of a slot's core among the `allowed` ones: within the share, round and round.
int core_of_slot(int slot, const CoreShare& share, int allowed);

/// Cores' worth of time that the control groups of a process grant, by their text (as in
/// /proc/self/cgroup) and the folder where they are mounted; nothing if there is no limit.
std::optional<double> cpu_quota(const std::string& groups, const std::filesystem::path& root);

/// Cores of the control group, likewise; nothing if it does not tell.
std::optional<int> cpuset_cores(const std::string& groups, const std::filesystem::path& root);

/// The cores that a thread may use, 0 for the calling one; nothing if the system does not tell, as
/// of more cores than a cpu_set_t has room for.
std::optional<cpu_set_t> affinity_of(pid_t thread);

/// Those that any of several threads may use: the calling one, the main one, and those after which
/// the entries of a folder are called (as in /proc/self/task), if it is there.
std::optional<cpu_set_t> affinity_of_threads(const std::filesystem::path& threads);

/// The cores that this process may use, as it was started or as near to that as can be known: those
/// of all its threads when they were first asked for, before any of the pool's was pinned. Its host
/// may have pinned some of them, the main one as well as the one that asks.
const std::optional<cpu_set_t>& allowed_cores();

/// Of this process. The environment is asked each time, the system once.
CoreFacts core_facts();

/// Of this process, as it was started.
const CoreShare& core_share();

}  // namespace strobe
