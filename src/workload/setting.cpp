#include "workload/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

[[noreturn]] void reject(std::string_view option, const std::string& value,
                         std::string_view allowed) {
  throw InvalidArgument(fmt::format("--{}", option),
                        fmt::format("is '{}', allowed is {}", value, allowed));
}

template <class Number>
Number read_number(std::string_view option, const std::string& text, Number least,
                   std::string_view allowed) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least)) reject(option, text, allowed);
  return value;
}

std::int64_t read_count(std::string_view option, const std::string& text) {
  return read_number<std::int64_t>(option, text, 1, "a whole number from 1");
}

std::int64_t read_length(std::string_view option, const std::string& text) {
  return read_number<std::int64_t>(option, text, 0, "a whole number from 0");
}

bool read_switch(std::string_view option, const std::string& text) {
  for (const char* yes : {"yes", "true", "on", "1"})
    if (text == yes) return true;
  for (const char* no : {"no", "false", "off", "0"})
    if (text == no) return false;
  reject(option, text, "yes or no");
}

Window read_window(const std::string& text) {
  static constexpr std::string_view kAllowed =
      "LEFT:RIGHT in keys, either side may be empty for no limit, or one number for both";
  const auto side = [](const std::string& digits) -> std::int64_t {
    return digits.empty() ? -1 : read_number<std::int64_t>("window", digits, 0, kAllowed);
  };
  const std::size_t colon = text.find(':');
  if (text.empty()) reject("window", text, kAllowed);
  if (colon == std::string::npos) return {side(text), side(text)};
  return {side(text.substr(0, colon)), side(text.substr(colon + 1))};
}

void apply_dtype(Problem& problem, const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (!dtype) reject("dtype", text, "fp32, fp16 or bf16");
  problem.dtype = *dtype;
}

void apply_layout(Problem& problem, const std::string& text) {
  if (text == "varlen") {
    const auto sequences = static_cast<std::size_t>(problem.batch);
    problem.lengths_q.assign(sequences, problem.seqlen_q);
    problem.lengths_k.assign(sequences, problem.keys());
    return;
  }
  for (const Layout layout : {Layout::separate, Layout::kvpacked, Layout::qkvpacked}) {
    if (text != name_of(layout)) continue;
    problem.layout = layout;
    return;
  }
  reject("layout", text, "separate, kvpacked, qkvpacked or varlen");
}

/// "512,77,900" or, in a list of such lists, "512/77/900".
void apply_lengths(Problem& problem, const std::string& text) {
  std::vector<std::int64_t> lengths;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t stop = std::min(text.find_first_of(",/", start), text.size());
    lengths.push_back(read_length("lengths", text.substr(start, stop - start)));
    start = stop + 1;
  }
  problem.batch = static_cast<std::int64_t>(lengths.size());
  problem.seqlen_q = *std::max_element(lengths.begin(), lengths.end());
  problem.seqlen_k.reset();
  problem.lengths_q = lengths;
  problem.lengths_k = std::move(lengths);
}

constexpr double kAnything = -std::numeric_limits<double>::max();

constexpr Setting kSettings[] = {
    {"batch", "batch_size", "N", "Sequences", "batch",
     [](Problem& p, const std::string& text) { p.batch = read_count("batch", text); }},
    {"seqlen", "seq_len", "N", "Length of a sequence", "seqlen_q",
     [](Problem& p, const std::string& text) { p.seqlen_q = read_length("seqlen", text); }},
    {"seqlen-k", "", "N", "Length of keys and values; as --seqlen if not given", "seqlen_k",
     [](Problem& p, const std::string& text) { p.seqlen_k = read_length("seqlen-k", text); }},
    {"nheads", "", "N", "Query heads", "heads",
     [](Problem& p, const std::string& text) { p.heads = read_count("nheads", text); }},
    {"kv-heads", "", "N", "Key and value heads; as many as query heads if not given", "heads_k",
     [](Problem& p, const std::string& text) { p.heads_k = read_count("kv-heads", text); }},
    {"headdim", "head_size", "N", "Head dimension", "dim",
     [](Problem& p, const std::string& text) { p.dim = read_count("headdim", text); }},
    {"headdim-v", "", "N", "Head dimension of the values; as --headdim if not given", "dim_v",
     [](Problem& p, const std::string& text) { p.dim_v = read_count("headdim-v", text); }},
    {"dtype", "", "NAME", "fp32, fp16 or bf16", "dtype", apply_dtype},
    {"causal", "", "[yes|no]", "Causal mask", "causal",
     [](Problem& p, const std::string& text) { p.causal = read_switch("causal", text); }},
    {"window", "", "L:R", "Keys a query sees to its left and right; empty means all", "window",
     [](Problem& p, const std::string& text) { p.window = read_window(text); }},
    {"scale", "", "X", "Factor on the logits; 1/sqrt(headdim) if not given", "scale",
     [](Problem& p, const std::string& text) {
       p.scale = read_number<double>("scale", text, kAnything, "a number");
     }},
    {"softcap", "", "X", "Cap on the logits, by tanh; 0 is off", "softcap",
     [](Problem& p, const std::string& text) {
       p.softcap = read_number<double>("softcap", text, 0, "a number from 0");
     }},
    {"dropout", "", "P", "Probability of dropping a weight", "dropout",
     [](Problem& p, const std::string& text) {
       p.dropout = read_number<double>("dropout", text, 0, "a number from 0, below 1");
     }},
    {"layout", "", "NAME",
     "separate, kvpacked, qkvpacked, or varlen: sequences packed one after another", "layout",
     apply_layout},
    {"lengths", "", "N/N/...", "Sequences of these lengths, packed; instead of batch and seqlen",
     "lengths_q", apply_lengths},
};

/// The same error in the words of the command line.
[[noreturn]] void rethrow_by_option(const InvalidArgument& error) {
  const auto found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                  [&](const Setting& s) { return s.field == error.field(); });
  if (found == std::end(kSettings)) throw error;
  const std::string what = error.what();
  throw InvalidArgument(fmt::format("--{}", found->name), what.substr(error.field().size() + 1));
}

}  // namespace

std::string Setting::flags() const {
  return alias.empty() ? fmt::format("--{}", name) : fmt::format("--{},--{}", name, alias);
}

std::span<const Setting> settings() {
  return kSettings;
}

Problem default_problem() {
  return {.batch = 2, .seqlen_q = 1024, .heads = 8, .dim = 64, .dtype = DType::fp32};
}

Problem make_problem(const SettingValues& values, const Problem& base) {
  Problem problem = base;
  for (const Setting& setting : kSettings) {
    const auto found = values.find(setting.name);
    if (found != values.end()) setting.apply(problem, found->second);
  }
  try {
    problem.validate();
  } catch (const InvalidArgument& error) {
    rethrow_by_option(error);
  }
  return problem;
}

}  // namespace strobe::lab
