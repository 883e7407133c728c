// What Linux's control groups say of cores: /proc/self/cgroup has a line for each hierarchy,
// "0::/path" for the unified one (version 2), "3:cpu,cpuacct:/path" for one of version 1.
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/cores.h"

namespace strobe {
namespace {

using std::filesystem::path;

/// Folders of the group and of those around it, inmost first. A container sees paths of its host
/// that are not there; its own group is then the outermost.
std::vector<path> folders(const path& mount, std::string group) {
  std::vector<path> found;
  while (true) {
    found.push_back(mount / path(group).relative_path());
    if (group.empty() || group == "/") return found;
    group = path(group).parent_path().string();
  }
}

/// The folders of the hierarchy that has this controller; "" is the unified one.
std::vector<path> hierarchy(const std::string& groups, const path& root,
                            const std::string& controller) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controller.empty()) {
      if (names.empty()) return folders(root, group);
    } else if (("," + names + ",").find("," + controller + ",") != std::string::npos) {
      return folders(root / names, group);
    }
  }
  return {};
}

/// The first line of a file; "" if there is none.
std::string first_line(const path& file) {
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  return line;
}

/// Of "0-3,8": 5.
std::optional<int> count_cores(const std::string& list) {
  int count = 0;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0;
    int last = 0;
    const char* const end = range.data() + range.size();
    auto [stop, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc()) return std::nullopt;
    last = first;
    if (stop != end && *stop == '-') {
      if (std::from_chars(stop + 1, end, last).ec != std::errc()) return std::nullopt;
    }
    count += last - first + 1;
  }
  return count > 0 ? std::optional(count) : std::nullopt;
}

/// Microseconds of CPU time in a period; nothing if either makes no sense or means "no limit".
std::optional<double> cores_of(const std::string& quota, const std::string& period) {
  const double time = std::strtod(quota.c_str(), nullptr);  // 0 of "max"
  const double each = std::strtod(period.c_str(), nullptr);
  return time > 0 && each > 0 ? std::optional(time / each) : std::nullopt;
}

}  // namespace

std::optional<double> cpu_quota(const std::string& groups, const path& root) {
  std::optional<double> least;
  const auto limit = [&least](std::optional<double> quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  for (const path& folder : hierarchy(groups, root, "")) {
    const std::string line = first_line(folder / "cpu.max");  // "150000 100000", "max 100000"
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) limit(cores_of(line.substr(0, space), line.substr(space + 1)));
  }
  for (const path& folder : hierarchy(groups, root, "cpu")) {
    limit(cores_of(first_line(folder / "cpu.cfs_quota_us"),
                   first_line(folder / "cpu.cfs_period_us")));
  }
  return least;
}

std::optional<int> cpuset_cores(const std::string& groups, const path& root) {
  for (const path& folder : hierarchy(groups, root, "")) {
    if (const auto cores = count_cores(first_line(folder / "cpuset.cpus.effective"))) return cores;
  }
  for (const path& folder : hierarchy(groups, root, "cpuset")) {
    for (const char* const file : {"cpuset.effective_cpus", "cpuset.cpus"}) {
      if (const auto cores = count_cores(first_line(folder / file))) return cores;
    }
  }
  return std::nullopt;
}

CoreFacts core_facts() {
  static const CoreFacts system = [] {
    std::ostringstream groups;
    groups << std::ifstream("/proc/self/cgroup").rdbuf();
    const path root = "/sys/fs/cgroup";
    const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    const int present = cpuset_cores(groups.str(), root).value_or(online);
    const auto& allowed = allowed_cores();
    return CoreFacts{.variable = [](const char* name) { return std::getenv(name); },
                     .allowed = allowed ? CPU_COUNT(&*allowed) : present,
                     .present = present,
                     .quota = cpu_quota(groups.str(), root)};
  }();
  return system;
}

}  // namespace strobe
