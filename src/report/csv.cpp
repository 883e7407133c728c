#include "report/csv.h"

#include <nlohmann/json.hpp>

namespace strobe::lab {
namespace {

using nlohmann::json;

struct Column {
  std::string_view title;
  const char* place;  ///< in the record
};

constexpr Column kColumns[] = {{"implementation", "/implementation"},
                               {"device", "/device"},
                               {"pass", "/pass"},
                               {"batch", "/fields/batch"},
                               {"seqlen_q", "/fields/seqlen_q"},
                               {"seqlen_k", "/fields/seqlen_k"},
                               {"heads", "/fields/heads"},
                               {"heads_k", "/fields/heads_k"},
                               {"dim", "/fields/dim"},
                               {"dim_v", "/fields/dim_v"},
                               {"dtype", "/fields/dtype"},
                               {"causal", "/fields/causal"},
                               {"window_left", "/fields/window/0"},
                               {"window_right", "/fields/window/1"},
                               {"scale", "/fields/scale"},
                               {"softcap", "/fields/softcap"},
                               {"dropout", "/fields/dropout"},
                               {"layout", "/fields/layout"},
                               {"status", "/status"},
                               {"ms_p50", "/ms/p50"},
                               {"ms_min", "/ms/min"},
                               {"ms_mean", "/ms/mean"},
                               {"ms_max", "/ms/max"},
                               {"ms_p95", "/ms/p95"},
                               {"ms_ci95_low", "/ms/ci95/0"},
                               {"ms_ci95_high", "/ms/ci95/1"},
                               {"samples", "/samples"},
                               {"cache", "/sampling/cache"},
                               {"tflops_p50", "/tflops/p50"},
                               {"tflops_best", "/tflops/best"},
                               {"gbps", "/gbps"},
                               {"roofline", "/roofline"},
                               {"roof_tflops", "/roof/tflops"},
                               {"bound", "/roof/bound"},
                               {"memory_inputs", "/memory/inputs"},
                               {"memory_outputs", "/memory/outputs"},
                               {"memory_workspace", "/memory/workspace"},
                               {"memory_resident", "/memory/resident"},
                               {"memory_peak", "/memory/peak"},
                               {"error_max", "/error/max"},
                               {"error_mean", "/error/mean"},
                               {"rule", "/error/rule"},
                               {"cpu", "/machine/cpu"},
                               {"isa", "/machine/isa"},
                               {"threads", "/machine/threads"},
                               {"problem", "/problem"},
                               {"reason", "/reason"},
                               {"commit", "/commit"},
                               {"time", "/time"}};

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string cell(const json& record, const char* place) {
  const json::json_pointer where(place);
  if (!record.contains(where)) return "";
  const json& value = record.at(where);
  if (value.is_null()) return "";
  if (value.is_array()) return std::to_string(value.size());  // samples: how many
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

std::vector<std::string_view> csv_columns() {
  std::vector<std::string_view> titles;
  for (const Column& column : kColumns) titles.push_back(column.title);
  return titles;
}

std::string csv_of(std::span<const json> records) {
  std::string text;
  const auto append = [&text](const std::string& value, bool first) {
    if (!first) text += ',';
    text += value;
  };
  for (const Column& column : kColumns) append(std::string(column.title), &column == kColumns);
  text += '\n';
  for (const json& record : records) {
    for (const Column& column : kColumns) append(cell(record, column.place), &column == kColumns);
    text += '\n';
  }
  return text;
}

}  // namespace strobe::lab
