#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "strobe/problem.h"

namespace strobe::lab {
namespace {

using nlohmann::json;
using Records = std::vector<const json*>;

/// Something that tells lines apart, and how a label spells it.
struct Trait {
  const char* place;  ///< in the record
  std::string_view format;
};

constexpr const char* kLength = "/fields/seqlen_q";
constexpr const char* kPass = "/pass";

// Lines differ in these if they vary at all ...
constexpr Trait kLineTraits[] = {
    {"/implementation", "{}"}, {"/fields/dim", "d{}"}, {"/fields/dtype", "{}"}, {kPass, "{}"}};

// ... and in these if there would be two results for one length otherwise.
constexpr Trait kOtherTraits[] = {{"/fields/batch", "b{}"},
                                  {"/fields/heads", "h{}"},
                                  {"/fields/heads_k", "hk{}"},
                                  {"/fields/seqlen_k", "sk{}"},
                                  {"/fields/dim_v", "dv{}"},
                                  {"/fields/layout", "{}"},
                                  {"/fields/window", "window {}"},
                                  {"/fields/softcap", "softcap {}"},
                                  {"/fields/dropout", "dropout {}"},
                                  {"/fields/scale", "scale {}"},
                                  {"/problem", "{}"}};

std::string text_at(const json& record, const char* place) {
  const json::json_pointer where(place);
  if (!record.contains(where)) return "";
  const json& value = record.at(where);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

double number_at(const json& record, const char* place) {
  const json::json_pointer where(place);
  return record.contains(where) && record.at(where).is_number() ? record.at(where).get<double>()
                                                                : 0;
}

bool varies(const Records& records, const char* place) {
  return std::any_of(records.begin(), records.end(), [&](const json* record) {
    return text_at(*record, place) != text_at(*records.front(), place);
  });
}

std::string spell(const json& record, const Trait& trait) {
  return fmt::format(fmt::runtime(trait.format), text_at(record, trait.place));
}

std::string key(const json& record, const std::vector<Trait>& traits) {
  std::string text;
  for (const Trait& trait : traits) text += spell(record, trait) + '\n';
  return text;
}

bool collide(const Records& records, const std::vector<Trait>& traits) {
  std::set<std::pair<std::string, std::string>> taken;
  return !std::all_of(records.begin(), records.end(), [&](const json* record) {
    return taken.emplace(key(*record, traits), text_at(*record, kLength)).second;
  });
}

/// What tells the lines of these records apart.
std::vector<Trait> traits_of(const Records& records) {
  std::vector<Trait> traits;
  for (const Trait& trait : kLineTraits) {
    if (varies(records, trait.place)) traits.push_back(trait);
  }
  for (const Trait& trait : kOtherTraits) {
    if (!collide(records, traits)) break;
    if (varies(records, trait.place)) traits.push_back(trait);
  }
  return traits;
}

/// The product of two sizes, if it is the same for all: tokens, the hidden size.
std::string common_product(const Records& records, const char* a, const char* b,
                           std::string_view format) {
  std::set<double> products;
  for (const json* record : records) products.insert(number_at(*record, a) * number_at(*record, b));
  return products.size() == 1 ? fmt::format(fmt::runtime(format), *products.begin()) : "";
}

/// What the lines have in common: "batch 8, heads 1, fp32  |  Intel Xeon, avx512, 2 threads".
std::string subtitle_of(const Records& records) {
  std::vector<std::string> parts;
  const auto add = [&](const Trait& trait, const std::string& otherwise = "") {
    if (!varies(records, trait.place)) {
      parts.push_back(spell(*records.front(), trait));
    } else if (!otherwise.empty()) {
      parts.push_back(otherwise);
    }
  };
  add({"/implementation", "{}"});
  add({kPass, "{}"});
  add({"/fields/batch", "batch {}"},
      common_product(records, "/fields/batch", kLength, "{} tokens in all"));
  add({"/fields/heads", "heads {}"},
      common_product(records, "/fields/heads", "/fields/dim", "hidden size {}"));
  add({"/fields/dim", "head dim {}"});
  add({"/fields/dtype", "{}"});
  const json& first = *records.front();
  return fmt::format("{}  |  {}, {}, {} threads", fmt::join(parts, ", "),
                     text_at(first, "/machine/cpu"), text_at(first, "/machine/isa"),
                     text_at(first, "/machine/threads"));
}

bool take_out(std::vector<Trait>& traits, std::string_view place) {
  return std::erase_if(traits, [&](const Trait& trait) { return trait.place == place; }) > 0;
}

/// Lines of an implementation side by side, and among them those of a pass.
void put_in_order(std::vector<Plot::Line>& lines) {
  const auto place = [order = lines](const auto& same) {
    return std::find_if(order.begin(), order.end(), same) - order.begin();
  };
  std::stable_sort(lines.begin(), lines.end(), [&](const Plot::Line& a, const Plot::Line& b) {
    const auto rank = [&](const Plot::Line& line) {
      return std::pair{
          place([&](const auto& other) { return other.implementation == line.implementation; }),
          place([&](const auto& other) { return other.pass == line.pass; })};
    };
    return rank(a) < rank(b);
  });
}

std::vector<Plot::Line> lines_of(const Records& records, const char* quantity) {
  std::vector<Trait> traits = traits_of(records);
  const bool names_implementation = take_out(traits, kLineTraits[0].place);
  const bool names_pass = take_out(traits, kPass);
  std::vector<Plot::Line> lines;
  for (const json* record : records) {
    std::vector<std::string> variant;
    for (const Trait& trait : traits) variant.push_back(spell(*record, trait));
    const Plot::Line line{
        .implementation = names_implementation ? text_at(*record, kLineTraits[0].place) : "",
        .variant = fmt::format("{}", fmt::join(variant, ", ")),
        .pass = text_at(*record, kPass),
        .names_pass = names_pass};
    auto found = std::find_if(lines.begin(), lines.end(), [&](const Plot::Line& other) {
      return other.implementation == line.implementation && other.variant == line.variant &&
             other.pass == line.pass;
    });
    if (found == lines.end()) found = lines.insert(lines.end(), line);
    found->points.emplace_back(number_at(*record, kLength), number_at(*record, quantity));
  }
  for (Plot::Line& line : lines) std::sort(line.points.begin(), line.points.end());
  put_in_order(lines);
  return lines;
}

struct Quantity {
  std::string_view name, title;
  const char* place;
  std::string_view axis;
};

constexpr Quantity kQuantities[] = {
    {"time_ms", "Attention time", "/ms/p50", "Time (ms, median)"},
    {"tflops", "Attention speed", "/tflops/p50", "Speed (TFLOP/s, median)"}};

}  // namespace

std::string Plot::Line::label() const {
  std::vector<std::string> parts;
  for (const std::string& part : {implementation, variant, names_pass ? pass : ""}) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts.empty() ? pass : fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<Plot> plots_of(std::span<const json> records) {
  std::vector<Plot> plots;
  for (const Quantity& quantity : kQuantities) {
    for (const bool causal : {false, true}) {
      Records chosen;
      for (const json& record : records) {
        // A log axis has no place for a length of zero.
        if (text_at(record, "/status") == "ok" && number_at(record, quantity.place) > 0 &&
            number_at(record, kLength) > 0 &&
            text_at(record, "/fields/causal") == (causal ? "true" : "false")) {
          chosen.push_back(&record);
        }
      }
      if (chosen.empty()) continue;
      plots.push_back({.name = fmt::format("{}_causal_{}", quantity.name, causal),
                       .title = fmt::format("{}, {}", quantity.title,
                                            causal ? "causal mask" : "no causal mask"),
                       .subtitle = subtitle_of(chosen),
                       .quantity = std::string(quantity.axis),
                       .lines = lines_of(chosen, quantity.place)});
    }
  }
  return plots;
}

std::vector<std::string> plot_files() {
  std::vector<std::string> files;
  for (const Quantity& quantity : kQuantities) {
    for (const bool causal : {false, true}) {
      files.push_back(fmt::format("{}_causal_{}.png", quantity.name, causal));
    }
  }
  return files;
}

}  // namespace strobe::lab
