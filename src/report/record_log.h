#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "measure/sampler.h"
#include "strobe/implementation.h"

namespace strobe::lab {

/// A file of records, one a line, to which work that may be killed at any moment appends. Only one
/// process at a time has it.
class RecordLog {
 public:
  /// Opens or makes the file, takes it for this process and reads what is there; changes nothing
  /// yet. With `anew` it does not read, and the first record that is appended replaces it all.
  /// Throws InvalidArgument naming the file, and the line, for a file that cannot be written, is
  /// in use, or holds anything but records and at most the beginning of one at its end.
  RecordLog(std::string path, bool anew);
  ~RecordLog();
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  const std::string& path() const { return path_; }

  /// What was there when the file was opened.
  const std::vector<nlohmann::json>& records() const { return records_; }

  /// Bytes of a record at the end whose writer was killed; the first append cuts them off.
  std::size_t torn_bytes() const { return torn_bytes_; }

  /// Adds a line by a single write, so that a kill leaves it whole or torn but nothing else.
  /// Throws Error if it cannot be written, and leaves the file as it was.
  void append(const nlohmann::json& record);

 private:
  void open_and_lock();
  void read();

  std::string path_;
  int file_ = -1;
  bool prepared_ = false;   ///< the end of the file is the end of its last whole record
  std::int64_t whole_ = 0;  ///< bytes of whole records
  bool unterminated_ = false;
  std::size_t torn_bytes_ = 0;
  std::vector<nlohmann::json> records_;
};

/// What makes two records results of the same thing.
struct RecordKey {
  std::string implementation{};
  std::string problem{};     ///< its text form, pass and all
  std::string conditions{};  ///< processor, instruction set, threads, caches; GPU and its options

  bool operator==(const RecordKey&) const = default;
  bool operator<(const RecordKey& other) const {
    return std::tie(implementation, problem, conditions) <
           std::tie(other.implementation, other.problem, other.conditions);
  }
};

/// The key of a record; what it lacks is empty.
RecordKey key_of(const nlohmann::json& record);

/// The conditions that this process would measure an implementation of this kind of device under.
std::string conditions_here(Device::Kind kind, const PlanOptions& options,
                            const SamplingPolicy& policy);

/// How far work had come when it stopped.
struct Progression {
  /// For everything wanted the first record that is its result, if there is one.
  std::vector<std::optional<std::size_t>> done{};
  std::optional<std::size_t> stranger{};  ///< the first record that is the result of nothing wanted
};

Progression progression(std::span<const RecordKey> wanted, std::span<const nlohmann::json> records);

}  // namespace strobe::lab
