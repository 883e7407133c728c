#include "report/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/table.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

json at(const json& record, const char* place) {
  const json::json_pointer where(place);
  return record.contains(where) ? record.at(where) : json();
}

double number(const json& record, const char* place) {
  const json value = at(record, place);
  return value.is_number() ? value.get<double>() : 0;
}

std::string text(const json& record, const char* place) {
  const json value = at(record, place);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

bool timed(const json& record) {
  return record.contains("ms");
}

/// Whether its time may stand without its check beside it.
bool may_win(const json& record) {
  return timed(record) && text(record, "/status") == "ok";
}

/// The words of a problem's text but for the pass and the sizes of these letters.
std::string rest_of(const json& record, std::initializer_list<std::string_view> letters) {
  std::istringstream words(text(record, "/problem"));
  std::vector<std::string> rest;
  for (std::string word; words >> word;) {
    const std::string_view name =
        std::string_view(word).substr(0, word.find_first_of("0123456789"));
    const bool size = name.size() < word.size() &&
                      std::find(letters.begin(), letters.end(), name) != letters.end();
    if (!size && word != "bwd") rest.push_back(word);
  }
  return fmt::format("{}", fmt::join(rest, " "));
}

/// Records under a heading, both in the order of their first appearance.
struct Section {
  std::string heading{};
  std::vector<const json*> records{};
};

template <class Heading>
std::vector<Section> sections_of(std::span<const json> records, const Heading& heading) {
  std::vector<Section> sections;
  for (const json& record : records) {
    const std::string name = heading(record);
    auto found = std::find_if(sections.begin(), sections.end(),
                              [&](const Section& section) { return section.heading == name; });
    if (found == sections.end()) found = sections.insert(sections.end(), {name, {}});
    found->records.push_back(&record);
  }
  return sections;
}

bool same_problem(const json& a, const json& b) {
  return a.at("fields") == b.at("fields");
}

/// The record of a pass among those of the same problem, null if there is none.
const json* find(const std::vector<const json*>& records, const json& problem,
                 std::string_view pass, std::string_view implementation) {
  const auto found = std::find_if(records.begin(), records.end(), [&](const json* record) {
    return text(*record, "/pass") == pass && text(*record, "/implementation") == implementation &&
           same_problem(*record, problem);
  });
  return found == records.end() ? nullptr : *found;
}

/// A row for passes that follow one another; all of them are of one problem.
std::vector<std::string> throughput_row(std::initializer_list<const json*> passes) {
  const json& first = **passes.begin();
  std::vector<std::string> row;
  for (const char* size : {"/fields/batch", "/fields/seqlen_q", "/fields/heads", "/fields/dim"}) {
    row.push_back(text(first, size));
  }
  row.emplace_back(passes.size() == 1 ? "True" : "False");
  double ms = 0, work = 0, peak = 0;
  for (const json* pass : passes) {
    ms += number(*pass, "/ms/p50");
    work += number(*pass, "/ms/p50") * number(*pass, "/tflops/p50");
    peak = std::max(peak, number(*pass, "/memory/peak"));
    if (may_win(*pass)) continue;
    for (const auto& cell : {text(*pass, "/status"), std::string("-"), std::string("-")}) {
      row.push_back(cell);
    }
    row.emplace_back("-");
    return row;
  }
  for (const auto& cell : {fmt::format("{:.3f}", 1e3 / ms), fmt::format("{:.3f}", ms),
                           fmt::format("{:.0f}", peak / 1e6), fmt::format("{:.4f}", work / ms)}) {
    row.push_back(cell);
  }
  return row;
}

std::string throughput_section(const Section& section) {
  Table table({{"batch_size", kRight},
               {"seq_len", kRight},
               {"nheads", kRight},
               {"head_size", kRight},
               {"fwd_only"},
               {"throughput(iters/s)", kRight},
               {"latency(ms/iter)", kRight},
               {"peak memory(MB/device)", kRight},
               {"speed(TFLOPS)", kRight}});
  const auto add = [&](const json& forward, bool alone) {
    const json* backward =
        find(section.records, forward, "backward", text(forward, "/implementation"));
    if (alone) table.add_row(throughput_row({&forward}));
    if (!alone && backward != nullptr) table.add_row(throughput_row({&forward, backward}));
  };
  for (const bool alone : {true, false}) {
    for (const json* record : section.records) {
      if (text(*record, "/pass") == "forward") add(*record, alone);
    }
  }
  return fmt::format("{}\n{}", section.heading, table.render());
}

/// The different values of a text in the order in which they come.
std::vector<std::string> distinct(const std::vector<const json*>& records, const char* place) {
  std::vector<std::string> values;
  for (const json* record : records) {
    const std::string value = text(*record, place);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::string time_cell(const json* record) {
  if (record == nullptr) return "-";
  return may_win(*record) ? fmt::format("{:.3f}", number(*record, "/ms/p50"))
                          : text(*record, "/status");
}

std::string speed_up_cell(const json* base, const json* other) {
  const bool both = base != nullptr && other != nullptr && may_win(*base) && may_win(*other);
  return both ? fmt::format("{:.2f}x", number(*base, "/ms/p50") / number(*other, "/ms/p50")) : "-";
}

/// What an implementation needs for one problem: the pass that takes more.
std::string memory_cell(const std::vector<const json*>& records, const json& problem,
                        const std::string& implementation) {
  double peak = 0;
  for (const char* pass : {"forward", "backward"}) {
    const json* record = find(records, problem, pass, implementation);
    if (record != nullptr && may_win(*record))
      peak = std::max(peak, number(*record, "/memory/peak"));
  }
  return peak > 0 ? megabytes_text(peak) : "-";
}

std::string grid_section(const Section& section) {
  const auto passes = distinct(section.records, "/pass");
  const auto implementations = distinct(section.records, "/implementation");
  std::vector<Table::Column> columns{{"head dim", kRight}, {"seqlen", kRight}};
  for (const std::string& pass : passes) {
    for (const std::string& name : implementations) {
      columns.push_back({fmt::format("{} {}", pass, name), kRight});
    }
    if (implementations.size() > 1) columns.push_back({"speed-up", kRight});
  }
  for (const std::string& name : implementations) columns.push_back({name + " MB", kRight});

  Table table(std::move(columns));
  std::vector<const json*> rows;
  for (const json* record : section.records) {
    const bool known = std::any_of(rows.begin(), rows.end(),
                                   [&](const json* row) { return same_problem(*row, *record); });
    if (!known) rows.push_back(record);
  }
  for (const json* row : rows) {
    std::vector<std::string> cells{text(*row, "/fields/dim"), text(*row, "/fields/seqlen_q")};
    for (const std::string& pass : passes) {
      std::vector<const json*> results;
      for (const std::string& name : implementations) {
        results.push_back(find(section.records, *row, pass, name));
        cells.push_back(time_cell(results.back()));
      }
      if (results.size() > 1) cells.push_back(speed_up_cell(results.front(), results.back()));
    }
    for (const std::string& name : implementations) {
      cells.push_back(memory_cell(section.records, *row, name));
    }
    table.add_row(std::move(cells));
  }
  return fmt::format("{}: median times in ms\n{}", section.heading, table.render());
}

/// What was found of one point, or why nothing was.
std::vector<std::string> figures_of(const json& record) {
  if (!timed(record)) return {text(record, "/status"), "-", "-", "-", "-", "-", "-"};
  const double ms = number(record, "/ms/p50");
  const double interval = number(record, "/ms/ci95/1") - number(record, "/ms/ci95/0");
  const json error = at(record, "/error/max");
  const double roofline = number(record, "/roofline");
  return {fmt::format("{:.3f}", ms),
          interval > 0 ? fmt::format("{:.1f} %", 100 * interval / 2 / ms) : "-",
          fmt::format("{:.4f}", number(record, "/tflops/p50")),
          roofline > 0 ? fmt::format("{:.0f} %", 100 * roofline) : "-",
          megabytes_text(number(record, "/memory/peak")),
          error.is_number() ? error_text(error.get<double>()) : "-",
          text(record, "/error/rule")};
}

template <class Render>
std::string render_all(const std::vector<Section>& sections, const Render& render) {
  std::vector<std::string> tables;
  for (const Section& section : sections) tables.push_back(render(section));
  return fmt::format("{}", fmt::join(tables, "\n"));
}

}  // namespace

std::string list_table(std::span<const json> records) {
  Table table({{"Implementation"},
               {"Problem"},
               {"Time (ms)", kRight},
               {"+/-", kRight},
               {"TFLOP/s", kRight},
               {"Roofline", kRight},
               {"Memory (MB)", kRight},
               {"Max error", kRight},
               {"Check"}});
  for (const json& record : records) {
    std::vector<std::string> row{text(record, "/implementation"), text(record, "/problem")};
    const auto figures = figures_of(record);
    row.insert(row.end(), figures.begin(), figures.end());
    table.add_row(std::move(row));
  }
  return table.render();
}

std::string throughput_table(std::span<const json> records) {
  const auto heading = [](const json& record) {
    return fmt::format("{}, {}", text(record, "/implementation"),
                       rest_of(record, {"b", "sq", "h", "d"}));
  };
  return render_all(sections_of(records, heading), throughput_section);
}

std::string grid_table(std::span<const json> records) {
  const auto heading = [](const json& record) { return rest_of(record, {"sq", "d"}); };
  return render_all(sections_of(records, heading), grid_section);
}

}  // namespace strobe::lab
