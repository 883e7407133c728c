#include "cli/common.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "report/text.h"

namespace strobe::cli {
namespace {

/// Columns of the terminal that progress is shown on.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void warn(const std::string& sentence) {
  if (!sentence.empty()) fmt::print(stderr, "strobe: warning: {}\n", sentence);
}

}  // namespace

Implementations useful_among(const Implementations& implementations,
                             const std::vector<Problem>& problems, const PlanOptions& options) {
  Implementations useful;
  for (const Implementation* implementation : implementations) {
    const auto supported = [&](const Problem& problem) {
      return bool{implementation->supports(problem, options)};
    };
    if (std::any_of(problems.begin(), problems.end(), supported)) useful.push_back(implementation);
  }
  return useful.empty() ? implementations : useful;
}

void warn_of_slowdown(const lab::Benchmark& result) {
  warn(lab::slowdown_text(result));
}

void warn_of_low_peak(const lab::Benchmark& result, const lab::Peaks& peaks) {
  warn(lab::low_peak_text(result, peaks));
}

std::string duration_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 100 * 3600 ? fmt::format("{:.1f} h", seconds / 3600)
                              : fmt::format("{:.0f} days", seconds / 86400);
}

Progress::Progress(std::vector<double> weights, bool in_seconds)
    : weights_(std::move(weights)), in_seconds_(in_seconds), visible_(isatty(STDERR_FILENO) != 0) {}

Progress::Progress(std::size_t total, bool wanted)
    : Progress(std::vector<double>(total, 1), false) {
  visible_ = visible_ && wanted;
}

Progress::Progress(std::vector<double> seconds) : Progress(std::move(seconds), true) {}

void Progress::show(std::size_t done, const std::string& what) {
  if (!visible_) return;
  constexpr std::size_t kBar = 24;
  const auto next = weights_.begin() + static_cast<std::ptrdiff_t>(done);
  const double finished = std::accumulate(weights_.begin(), next, 0.0);
  const double ahead = std::accumulate(next, weights_.end(), 0.0);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  std::string left;
  if (finished > 0 || in_seconds_) {
    const double pace = finished > 0 ? spent.count() / finished : 1;
    left = fmt::format(", {} left", duration_text(pace * ahead));
  }
  const auto filled = static_cast<std::size_t>(kBar * finished / (finished + ahead));
  const std::string line = fmt::format("[{:=<{}}{:<{}}] {}/{}{}  ", "", filled, "", kBar - filled,
                                       done + 1, weights_.size(), left);
  const std::size_t room = std::max(terminal_width(), line.size() + 1) - line.size() - 1;
  fmt::print(stderr, "\r\x1b[K{}{}", line, what.substr(0, room));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace strobe::cli
