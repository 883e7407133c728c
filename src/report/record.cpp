#include "report/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "measure/roofline.h"
#include "report/commit.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

json problem_fields(const Problem& p) {
  json fields{{"batch", p.batch},
              {"seqlen_q", p.seqlen_q},
              {"seqlen_k", p.keys()},
              {"heads", p.heads},
              {"heads_k", p.kv_heads()},
              {"dim", p.dim},
              {"dim_v", p.value_dim()},
              {"dtype", name_of(p.dtype)},
              {"layout", name_of(p.layout)},
              {"scale", p.softmax_scale()},
              {"causal", p.causal},
              {"window", {p.window.left, p.window.right}},
              {"softcap", p.softcap},
              {"alibi", p.alibi},
              {"sinks", p.sinks},
              {"bias", p.bias ? json(name_of(*p.bias)) : json(nullptr)},
              {"dropout", p.dropout}};
  if (p.varlen()) {
    fields["lengths_q"] = p.lengths_q;
    fields["lengths_k"] = p.lengths_k;
  }
  return fields;
}

json plan_record(const TuningRecord& tuning) {
  json plan = json::object();
  for (const auto& [key, value] : tuning) plan[key] = value;
  return plan;
}

/// What this process was last told to do, so that a record says how to get it again.
std::string& command_line() {
  static std::string line;
  return line;
}

/// What every record has, whoever wrote it.
template <class Result>
json common_record(const Result& result, const Problem& problem, int threads) {
  json record{{"schema", kRecordSchema},
              {"implementation", result.implementation},
              {"device", to_string(result.device)},
              {"problem", problem.text()},
              {"fields", problem_fields(problem)},
              {"pass", name_of(problem.pass)},
              {"status", name_of(result.status)},
              {"plan", plan_record(result.tuning)}};
  record.update(provenance_record(threads, result.device.index));
  if (!result.reason.empty()) record["reason"] = result.reason;
  if (result.device.kind != Device::Kind::cpu) record["options"] = options_record(result.options);
  return record;
}

/// JSON has no infinity, which is what a misplaced NaN has as its error.
json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

json error_record(const TensorReport& tensor) {
  const Comparison& c = tensor.comparison;
  return {{"max", number(c.max_error)},
          {"mean", number(c.mean_error)},
          {"bound", number(c.bound)},
          {"mean_bound", number(c.mean_bound)},
          {"baseline_max", number(c.baseline_max)},
          {"baseline_mean", number(c.baseline_mean)},
          {"worst", tensor.worst_index},
          {"rule", c.pass() ? "pass" : "fail"}};
}

json memory_record(const Memory& memory) {
  return {{"inputs", memory.inputs},
          {"outputs", memory.outputs},
          {"workspace", memory.workspace},
          {"resident", memory.resident ? json(*memory.resident) : json(nullptr)},
          {"peak", memory.peak()}};
}

json sampling_record(const Benchmark& b) {
  json record = {{"cache", name_of(b.cache())},         {"copies", b.copies},
                 {"warmup", b.measurement.warmup_runs}, {"target", b.policy.target},
                 {"budget_s", b.policy.budget_s},       {"min_samples", b.policy.min_samples},
                 {"max_samples", b.policy.max_samples}, {"interleaved_with", b.rivals},
                 {"clock", b.measurement.clock},        {"pinned", b.policy.pin}};
  if (const auto& call = b.measurement.call_ms) record["call_us"] = *call * 1e3;
  return record;
}

template <class Value>
void add_if_told(json& fields, const char* name, const std::optional<Value>& value) {
  if (value) fields[name] = *value;
}

/// Empty where the device told nothing.
json watch_record(const DeviceWatch& device) {
  json moments = json::object();
  const auto add = [&moments](const char* name, const std::optional<DeviceState>& state) {
    if (state && !state_record(*state).empty()) moments[name] = state_record(*state);
  };
  add("before", device.before);
  add("during", device.during);
  add("after", device.after);
  if (!moments.empty()) moments["slowed_by"] = device.slowed_by;
  return moments;
}

json roof_record(const Roofline& roof) {
  return {{"tflops", roof.flops_per_second() / 1e12},
          {"bound", roof.memory_bound() ? "memory" : "compute"},
          {"intensity", roof.intensity},
          {"peak_tflops", roof.peak_flops / 1e12},
          {"bandwidth_gbps", roof.bytes_per_second / 1e9}};
}

json times_record(const Statistics& ms) {
  return {{"min", ms.min},
          {"mean", ms.mean},
          {"max", ms.max},
          {"p50", ms.median},
          {"p95", ms.p95},
          {"stddev", ms.stddev},
          {"ci95", ms.ci95 ? json{ms.ci95->low, ms.ci95->high} : json(nullptr)}};
}

json product_record(const ProductResult& product) {
  const auto tflops = [&product](double ms) { return product.flops_per_second(ms) / 1e12; };
  return {{"size", product.size},
          {"library", product.library},
          {"ms", times_record(product.ms)},
          {"tflops", {{"p50", tflops(product.ms.median)}, {"best", tflops(product.ms.min)}}}};
}

[[noreturn]] void fail_to_write(const std::string& path, int reason) {
  throw InvalidArgument("--json",
                        fmt::format("'{}' cannot be written: {}", path, std::strerror(reason)));
}

}  // namespace

json state_record(const DeviceState& state) {
  json fields = json::object();
  add_if_told(fields, "clock_mhz", state.clock_mhz);
  add_if_told(fields, "memory_clock_mhz", state.memory_clock_mhz);
  add_if_told(fields, "power_w", state.power_w);
  add_if_told(fields, "temperature_c", state.temperature_c);
  add_if_told(fields, "memory_used", state.memory_used_bytes);
  return fields;
}

json settings_record(const DeviceSettings& settings) {
  json fields = json::object();
  add_if_told(fields, "most_clock_mhz", settings.most_clock_mhz);
  add_if_told(fields, "most_memory_clock_mhz", settings.most_memory_clock_mhz);
  add_if_told(fields, "power_limit_w", settings.power_limit_w);
  add_if_told(fields, "usual_power_limit_w", settings.usual_power_limit_w);
  add_if_told(fields, "persistent", settings.persistent);
  if (fields.empty()) return fields;
  fields["processes"] = json::array();
  for (const DeviceSettings::Process& process : settings.processes) {
    json& other = fields["processes"].emplace_back(json{{"id", process.id}});
    add_if_told(other, "memory", process.memory_bytes);
  }
  return fields;
}

void remember_command(const std::string& program, std::span<const std::string> arguments) {
  std::string line = program;
  for (const std::string& word : arguments) {
    const bool plain = !word.empty() && word.find_first_of(" \t\"'*;|&$") == std::string::npos;
    line += plain ? fmt::format(" {}", word) : fmt::format(" '{}'", word);
  }
  command_line() = line;
}

json options_record(const PlanOptions& options) {
  json record = {{"tf32", options.tf32},
                 {"deterministic", options.deterministic},
                 {"reference", name_of(options.reference)}};
  if (!options.variant.empty()) record["variant"] = options.variant;
  return record;
}

json record_of(const Benchmark& b, const Peaks& peaks) {
  json record = common_record(b, b.problem, peaks.threads);
  record["memory"] = memory_record(b.memory);
  record["sampling"] = sampling_record(b);
  const Roofline roof = roofline(b, peaks);
  if (roof.intensity > 0) record["roof"] = roof_record(roof);
  if (const json state = watch_record(b.measurement.device); !state.empty())
    record["device_state"] = state;
  if (b.product) record["product"] = product_record(*b.product);
  if (!b.timed()) return record;
  const Statistics& ms = b.measurement.ms;
  record["ms"] = times_record(ms);
  record["samples"] = b.measurement.samples_ms;
  const double rate = b.flops_per_second(ms.median);
  record["tflops"] = {{"p50", rate / 1e12}, {"best", b.flops_per_second(ms.min) / 1e12}};
  record["gbps"] = static_cast<double>(b.memory.inputs + b.memory.outputs) / ms.median / 1e6;
  if (roof.flops_per_second() > 0) record["roofline"] = rate / roof.flops_per_second();
  record["error"] = {{"rule", name_of(b.accuracy.verdict)}, {"scope", b.accuracy.scope}};
  if (b.accuracy.measured) {
    record["error"]["max"] = number(b.accuracy.max_error);
    record["error"]["mean"] = number(b.accuracy.mean_error);
  }
  return record;
}

json record_of(const Case& what, const Report& report) {
  json record = common_record(report, what.problem, 0);
  record["memory"] = {{"workspace", report.workspace_bytes}};
  record["inputs"] = {{"scale", what.inputs.scale},
                      {"distribution", name_of(what.inputs.distribution)},
                      {"storage", name_of(what.inputs.storage)},
                      {"masked_bias", what.inputs.masked_bias},
                      {"seed", what.inputs.seed}};
  const char* const rule = report.tensors.empty()        ? "not-checked"
                           : report.status == Status::ok ? "pass"
                                                         : "fail";
  json error{{"rule", rule}};
  for (const TensorReport& tensor : report.tensors) {
    error[std::string(tensor.tensor)] = error_record(tensor);
    if (tensor.tensor == "out") {
      error["max"] = number(tensor.comparison.max_error);
      error["mean"] = number(tensor.comparison.mean_error);
    }
  }
  record["error"] = std::move(error);
  return record;
}

json record_of(const Peaks& peaks) {
  json tflops = json::object();
  for (const auto& [dtype, rate] : peaks.flops_per_second)
    tflops[std::string(name_of(dtype))] = rate / 1e12;
  if (peaks.tf32_flops_per_second > 0) tflops["tf32"] = peaks.tf32_flops_per_second / 1e12;
  json instructions = json::array();
  for (const auto& rate : peaks.instructions) {
    instructions.push_back(
        {{"name", rate.name}, {"dtype", name_of(rate.dtype)}, {"tflops", rate.per_second / 1e12}});
  }
  json copy = json::array();
  for (const auto& rate : peaks.copy) {
    copy.push_back({{"bytes_per_thread", rate.bytes_per_thread},
                    {"bandwidth_gbps", rate.bytes_per_second / 1e9}});
  }
  return {{"device", to_string(peaks.device)},
          {"threads", peaks.threads},
          {"tflops", tflops},
          {"instructions", instructions},
          {"copy", copy}};
}

json record_of_kind(std::string_view kind, json fields) {
  fields["schema"] = kRecordSchema;
  fields["kind"] = kind;
  return fields;
}

namespace {

/// The GPU of this index, null if there is none; looked for once, since that starts the driver.
json gpu_record(int index) {
  static const CudaStatus status = cuda_status();
  const auto place = static_cast<std::size_t>(index);
  if (!status.unavailable.empty() || place >= status.devices.size()) return {};
  const CudaDevice& gpu = status.devices[place];
  return {{"name", gpu.name},
          {"architecture", gpu.architecture},
          {"memory", gpu.memory_bytes},
          {"driver", status.nvml.version},
          {"cuda", status.driver.version},
          {"nvrtc", status.nvrtc.version}};
}

}  // namespace

json machine_record(int threads, int gpu) {
  const Machine here = machine();
  return {{"architecture", here.architecture},
          {"cpu", here.cpu},
          {"cores", here.cores},
          {"isa", here.isa},
          {"memory", here.memory_bytes},
          {"threads", threads > 0 ? threads : here.cores},
          {"gpu", gpu_record(gpu)}};
}

json provenance_record(int threads, int gpu) {
  return {{"machine", machine_record(threads, gpu)},
          {"version", version()},
          {"commit", commit()},
          {"command", command_line()},
          {"time", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))}};
}

RecordWriter::RecordWriter(std::string path, bool force) : path_(std::move(path)), force_(force) {
  if (path_.empty() || path_ == "-") return;
  std::error_code error;
  const auto type = std::filesystem::status(path_, error).type();
  if (type == std::filesystem::file_type::none) fail_to_write(path_, error.value());
  const bool there = type != std::filesystem::file_type::not_found;
  if (there && !force) {
    throw InvalidArgument(
        "--json",
        fmt::format("'{}' exists already; name another file, or add --force to replace it", path_));
  }
  if (type == std::filesystem::file_type::directory)
    throw InvalidArgument("--json", fmt::format("'{}' is a folder; name a file", path_));
  // Many may write to a device, such as /dev/null, but few to its folder.
  const std::filesystem::path file = path_;
  const std::filesystem::path written = there ? file : file.parent_path() / ".";
  if (access(written.c_str(), W_OK) != 0) fail_to_write(path_, errno);
}

void RecordWriter::write(const Benchmark& benchmark, const Peaks& peaks) {
  if (!path_.empty()) write(record_of(benchmark, peaks));
}

void RecordWriter::write(const Case& what, const Report& report) {
  if (!path_.empty()) write(record_of(what, report));
}

void RecordWriter::write(const json& record) {
  if (path_.empty()) return;
  if (!file_) {
    // "x": should another program have made the file by now, it is not ours to write.
    file_.reset(path_ == "-" ? stdout : std::fopen(path_.c_str(), force_ ? "w" : "wx"));
    if (!file_) fail_to_write(path_, errno);
  }
  const std::string line = record.dump() + "\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (!written || std::fflush(file_.get()) != 0)
    throw Error(fmt::format("a record cannot be written to {}: {}",
                            path_ == "-" ? "the standard output" : fmt::format("'{}'", path_),
                            std::strerror(errno)));
}

void RecordWriter::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

}  // namespace strobe::lab
