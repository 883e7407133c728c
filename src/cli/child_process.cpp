#include "cli/child_process.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is in no other
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

namespace strobe::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Begins it in a process group of its own, with everything that it prints going to the file.
/// Returns 0 if it does not begin.
pid_t spawn(const std::vector<std::string>& arguments, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, words.front(), &files, &attributes, words.data(), environ) != 0)
    child = 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return child;
}

/// Whether it ended in time; then `status` is how.
bool wait_for(pid_t child, std::chrono::duration<double> limit, int& status) {
  const Clock::time_point start = Clock::now();
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() - start > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// First it is asked to end, for profilers have things to clean up.
void end_group(pid_t child, int& status) {
  kill(-child, SIGTERM);
  if (!wait_for(child, std::chrono::seconds(1), status)) {
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
  }
  kill(-child, SIGKILL);  // what it had started
}

std::string text_of(std::FILE* file) {
  std::string text;
  std::array<char, 4096> part{};
  std::rewind(file);
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), file))
    text.append(part.data(), count);
  return text;
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& arguments, double seconds) {
  const File printed(std::tmpfile());
  if (!printed) return {.status = -1, .output = "there is no room for a temporary file"};
  const pid_t child = spawn(arguments, fileno(printed.get()));
  if (child == 0) return {.status = -1, .output = "it does not start"};
  int status = 0;
  const bool in_time = wait_for(child, std::chrono::duration<double>(seconds), status);
  if (!in_time) end_group(child, status);
  constexpr int kBySignal = 128;
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status),
          .timed_out = !in_time,
          .output = text_of(printed.get())};
}

}  // namespace strobe::cli
