#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "measure/benchmark.h"
#include "measure/peaks.h"
#include "strobe/accelerator.h"
#include "verify/case.h"
#include "verify/verify.h"

namespace strobe::lab {

/// The version of the records that are written, and the only one that is read.
inline constexpr int kRecordSchema = 1;

/// What records say that their command was, as it would be typed; "" before.
void remember_command(const std::string& program, std::span<const std::string> arguments);

/// The record of one timed implementation, the same fields for every tool.
nlohmann::json record_of(const Benchmark& benchmark, const Peaks& peaks);

/// The record of one verified implementation: no times, an error for every tensor.
nlohmann::json record_of(const Case& what, const Report& report);

/// What a device can do at most, as a part of a record. Operations on int8 are told as FLOPs.
nlohmann::json record_of(const Peaks& peaks);

/// A record of anything else, with these fields: what is only of results passes it over by its
/// kind.
nlohmann::json record_of_kind(std::string_view kind, nlohmann::json fields);

/// What was asked of a GPU besides the problem.
nlohmann::json options_record(const PlanOptions& options);

/// What a device says of itself, and how it is set up; empty where it tells nothing.
nlohmann::json state_record(const DeviceState& state);
nlohmann::json settings_record(const DeviceSettings& settings);

/// The machine's part of a record, with the GPU of this index. 0 threads are those that it would
/// use by itself.
nlohmann::json machine_record(int threads, int gpu = 0);

/// What every record says of where it comes from: machine, version, commit, command, time.
nlohmann::json provenance_record(int threads, int gpu = 0);

/// Writes records, one JSON object a line.
class RecordWriter {
 public:
  /// To a file, which must not exist unless `force`, to the standard output for "-", or nowhere
  /// for "". Throws InvalidArgument at once if that will not do, but makes the file, or replaces
  /// it, only for the first record: work that fails leaves nothing behind and destroys nothing.
  RecordWriter(std::string path, bool force);

  void write(const Benchmark& benchmark, const Peaks& peaks);
  void write(const Case& what, const Report& report);
  void write(const nlohmann::json& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };

  std::string path_;
  bool force_;
  std::unique_ptr<std::FILE, Close> file_{};
};

}  // namespace strobe::lab
