#include "report/record_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "report/record.h"
#include "report/record_file.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

/// How every line begins, so that the beginning of one can be told from somebody else's text.
constexpr std::string_view kBeginning = R"({"schema":)";

constexpr std::string_view kWayOut = "name another file, or add --force to start it anew";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidArgument("--output", fmt::format("'{}' {}", path, why));
}

std::string line_of(json record) {
  const std::string schema = record.at("schema").dump();
  record.erase("schema");
  const std::string rest = record.dump();
  return fmt::format("{}{}{}{}\n", kBeginning, schema, record.empty() ? "" : ",",
                     std::string_view(rest).substr(1));
}

bool can_be_torn(std::string_view tail) {
  const std::size_t common = std::min(tail.size(), kBeginning.size());
  return tail.substr(0, common) == kBeginning.substr(0, common);
}

std::string read_all(int file, const std::string& path) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = pread(file, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (count < 0) refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

std::vector<json> parse(const std::string& text, const std::string& path) {
  std::istringstream lines(text);
  try {
    return read_records(lines, path);
  } catch (const InvalidArgument& error) {
    const std::string why = std::string(error.what()).substr(error.field().size() + 1);
    throw InvalidArgument("--output", fmt::format("{}; {}", why, kWayOut));
  }
}

std::string text_at(const json& record, const std::string& pointer) {
  const json::json_pointer where(pointer);
  if (!record.contains(where)) return "";
  const json& value = record.at(where);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// From a record, or as much of one as there is before the result.
std::string conditions_text(const json& record) {
  std::string text =
      fmt::format("{}, {}, {} threads, {} caches", text_at(record, "/machine/cpu"),
                  text_at(record, "/machine/isa"), text_at(record, "/machine/threads"),
                  text_at(record, "/sampling/cache"));
  const std::string device = text_at(record, "/device");
  if (!device.starts_with("cuda")) return text;
  text += fmt::format(", {} {}", device, text_at(record, "/machine/gpu/name"));
  for (const char* option : {"tf32", "deterministic"}) {
    if (text_at(record, fmt::format("/options/{}", option)) == "true")
      text += fmt::format(", {}", option);
  }
  const std::string reference = text_at(record, "/options/reference");
  if (parse_softmax_reference(reference)) text += fmt::format(", {} reference", reference);
  return text;
}

}  // namespace

RecordLog::RecordLog(std::string path, bool anew) : path_(std::move(path)) {
  open_and_lock();
  if (anew) return;
  try {
    read();
  } catch (...) {
    close(file_);
    throw;
  }
}

RecordLog::~RecordLog() {
  close(file_);
}

void RecordLog::open_and_lock() {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
  struct stat about {};
  const bool regular = fstat(file_, &about) == 0 && S_ISREG(about.st_mode);
  const bool locked = regular && flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (locked) return;
  close(file_);
  refuse(path_, regular ? "is being written by another sweep; wait for it or name another file"
                        : "is not a plain file, which results could be added to");
}

void RecordLog::read() {
  const std::string text = read_all(file_, path_);
  whole_ = static_cast<std::int64_t>(text.rfind('\n') + 1);  // none: npos + 1 = 0
  std::string_view tail = std::string_view(text).substr(static_cast<std::size_t>(whole_));
  // A record that lacks nothing but the end of its line is kept.
  unterminated_ = !tail.empty() && !json::parse(tail, nullptr, false).is_discarded();
  if (unterminated_) {
    whole_ = static_cast<std::int64_t>(text.size());
    tail = {};
  }
  records_ = parse(text.substr(0, static_cast<std::size_t>(whole_)), path_);
  if (!can_be_torn(tail)) {
    refuse(path_, fmt::format("ends with '{:.40}', which is not the beginning of a record; {}",
                              tail, kWayOut));
  }
  torn_bytes_ = tail.size();
}

void RecordLog::append(const json& record) {
  if (!prepared_ && ftruncate(file_, whole_) != 0) {
    throw Error(fmt::format("'{}' cannot be shortened: {}", path_, std::strerror(errno)));
  }
  prepared_ = true;
  const std::string line = fmt::format("{}{}", unterminated_ ? "\n" : "", line_of(record));
  const ssize_t count = write(file_, line.data(), line.size());
  if (count != static_cast<ssize_t>(line.size())) {
    const std::string why = count < 0 ? std::strerror(errno) : "there is no room for it";
    prepared_ = ftruncate(file_, whole_) == 0;
    throw Error(fmt::format("a record cannot be added to '{}': {}", path_, why));
  }
  unterminated_ = false;
  whole_ += count;
}

RecordKey key_of(const json& record) {
  return {text_at(record, "/implementation"), text_at(record, "/problem"), conditions_text(record)};
}

std::string conditions_here(Device::Kind kind, const PlanOptions& options,
                            const SamplingPolicy& policy) {
  return conditions_text({{"device", to_string({kind, options.device})},
                          {"options", options_record(options)},
                          {"machine", machine_record(options.threads, options.device)},
                          {"sampling", {{"cache", name_of(policy.cache_on(kind))}}}});
}

Progression progression(std::span<const RecordKey> wanted, std::span<const json> records) {
  std::map<RecordKey, std::size_t> places;
  for (std::size_t i = 0; i < wanted.size(); ++i) places.emplace(wanted[i], i);
  Progression result{.done = std::vector<std::optional<std::size_t>>(wanted.size())};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto place = places.find(key_of(records[i]));
    if (place == places.end()) {
      if (!result.stranger) result.stranger = i;
    } else if (!result.done[place->second]) {
      result.done[place->second] = i;
    }
  }
  return result;
}

}  // namespace strobe::lab
