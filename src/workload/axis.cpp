#include "workload/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr std::size_t kMostValues = 10'000;

/// Size `setting`, written WORD/NUMBER, as a function of the size `of`.
struct Relation {
  std::string_view setting, word, of;
  bool number_is_divided;  ///< NUMBER / of, otherwise of / NUMBER
};

constexpr Relation kRelations[] = {{"batch", "tokens", "seqlen", true},
                                   {"nheads", "hidden", "headdim", true},
                                   {"kv-heads", "nheads", "nheads", false}};

[[noreturn]] void reject(std::string_view option, std::string_view why) {
  throw InvalidArgument(fmt::format("--{}", option), std::string(why));
}

std::optional<std::int64_t> read_whole(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

bool is_size(const Setting& setting) {
  return setting.value == "N";
}

const Relation* find_relation(std::string_view setting) {
  const auto* const found = std::find_if(std::begin(kRelations), std::end(kRelations),
                                         [&](const Relation& r) { return r.setting == setting; });
  return found == std::end(kRelations) ? nullptr : found;
}

/// The NUMBER of "WORD/NUMBER", if the item is the relation of its setting.
std::optional<std::int64_t> relation_number(std::string_view setting, std::string_view item) {
  const Relation* const relation = find_relation(setting);
  const std::size_t slash = item.find('/');
  if (relation == nullptr || slash == std::string_view::npos) return std::nullopt;
  if (item.substr(0, slash) != relation->word) return std::nullopt;
  const auto number = read_whole(item.substr(slash + 1));
  return number && *number > 0 ? number : std::nullopt;
}

std::string allowed_items(const Setting& setting) {
  std::string text = "a number, a range FIRST:LAST:*FACTOR or FIRST:LAST:+STEP";
  if (const Relation* const relation = find_relation(setting.name)) {
    text += fmt::format(", or {}/NUMBER", relation->word);
  }
  return text;
}

struct Range {
  std::int64_t first = 0, last = 0, step = 0;
  bool geometric = false;
};

Range read_range(const Setting& setting, std::string_view item) {
  const auto malformed = [&] {
    reject(setting.name, fmt::format("is '{}', allowed is {}", item, allowed_items(setting)));
  };
  const std::size_t colon = item.find(':'), second = item.find(':', colon + 1);
  if (second == std::string_view::npos || second + 1 == item.size()) malformed();
  const char sign = item[second + 1];
  const auto first = read_whole(item.substr(0, colon));
  const auto last = read_whole(item.substr(colon + 1, second - colon - 1));
  const auto step = read_whole(item.substr(second + 2));
  if (!first || !last || !step || (sign != '*' && sign != '+')) malformed();
  return {*first, *last, *step, sign == '*'};
}

std::vector<std::string> expand_range(const Setting& setting, std::string_view item) {
  const auto [first, last, step, geometric] = read_range(setting, item);
  const auto refuse = [&](std::string_view why) {
    reject(setting.name, fmt::format("is '{}', {}", item, why));
  };
  if (first > last) refuse("a range with nothing in it; allowed is a first number up to the last");
  if (geometric && (step < 2 || first == 0))
    refuse("allowed is a factor from 2 and a first number from 1");
  if (!geometric && step == 0) refuse("allowed is a step from 1");
  std::vector<std::string> values;
  for (std::int64_t value = first;; value = geometric ? value * step : value + step) {
    if (values.size() == kMostValues) refuse(fmt::format("allowed are {} values", kMostValues));
    values.push_back(fmt::to_string(value));
    const bool past_the_end = geometric ? value > last / step : value > last - step;
    if (past_the_end) return values;
  }
}

std::vector<std::string> expand_item(const Setting& setting, const std::string& item) {
  if (setting.name == "causal" && item == "both") return {"no", "yes"};
  if (is_size(setting) && item.find(':') != std::string::npos) return expand_range(setting, item);
  if (relation_number(setting.name, item)) return {item};
  if (is_size(setting) && item.find('/') != std::string::npos) {
    reject(setting.name, fmt::format("is '{}', allowed is {}", item, allowed_items(setting)));
  }
  return {item};
}

std::int64_t default_size(std::string_view setting) {
  const Problem problem = default_problem();
  return setting == "seqlen"    ? problem.seqlen_q
         : setting == "headdim" ? problem.dim
                                : problem.heads;
}

std::int64_t divide(const Relation& relation, std::string_view item, std::int64_t dividend,
                    std::int64_t divisor) {
  if (divisor == 0 || dividend % divisor != 0) {
    reject(
        relation.setting,
        fmt::format("is '{}', which is {} divided by {} and leaves a remainder; allowed is a "
                    "{} that divides it",
                    item, dividend, divisor, relation.number_is_divided ? relation.of : "number"));
  }
  return dividend / divisor;
}

/// The size that a setting has among `values`. Relations lead from one setting to another and
/// never back, so this ends.
std::int64_t size_of(const SettingValues& values, std::string_view setting) {
  const auto found = values.find(setting);
  if (found == values.end()) return default_size(setting);
  const auto number = relation_number(setting, found->second);
  if (!number) {
    if (const auto plain = read_whole(found->second)) return *plain;
    reject(setting, fmt::format("is '{}', allowed is a whole number", found->second));
  }
  const Relation& relation = *find_relation(setting);
  const std::int64_t other = size_of(values, relation.of);
  return relation.number_is_divided ? divide(relation, found->second, *number, other)
                                    : divide(relation, found->second, other, *number);
}

std::int64_t shorten(std::string_view option, std::int64_t length, std::int64_t by) {
  if (length % by != 0) {
    reject("shrink", fmt::format("is {}, which does not divide {} of --{}", by, length, option));
  }
  return length / by;
}

}  // namespace

Axis read_axis(const Setting& setting, const std::string& list) {
  Axis axis{.setting = std::string(setting.name)};
  if (setting.name == "causal" && list.empty()) return {axis.setting, {"yes"}};
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t stop = std::min(list.find(',', start), list.size());
    for (const std::string& value : expand_item(setting, list.substr(start, stop - start))) {
      Problem scratch = default_problem();  // only to hear whether the value is one
      if (!relation_number(setting.name, value)) setting.apply(scratch, value);
      const bool known =
          std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end();
      if (!known) axis.values.push_back(value);
    }
    start = stop + 1;
  }
  return axis;
}

SettingValues resolve(const SettingValues& values) {
  SettingValues resolved = values;
  for (auto& [setting, value] : resolved) {
    if (relation_number(setting, value)) value = fmt::to_string(size_of(values, setting));
  }
  return resolved;
}

Axis shortened(Axis axis, std::int64_t by) {
  const bool lengths = axis.setting == "seqlen" || axis.setting == "seqlen-k";
  for (std::string& value : axis.values) {
    if (lengths) {
      value = fmt::to_string(shorten(axis.setting, read_whole(value).value_or(0), by));
    } else if (const auto tokens = relation_number(axis.setting, value);
               tokens && axis.setting == "batch") {
      value = fmt::format("tokens/{}", shorten(axis.setting, *tokens, by));
    }
  }
  return axis;
}

}  // namespace strobe::lab
