// The compact text form of a Problem: words in any order, each at most once.
#include <algorithm>
#include <charconv>
#include <set>

#include "core/text.h"
#include "strobe/error.h"
#include "strobe/problem.h"

namespace strobe {
namespace {

constexpr std::string_view kVocabulary =
    "b, s or sq, sk, h, hk, d, dv, lq, lk, w, scale, cap, drop, seed with a value, fp32, fp16, "
    "bf16, "
    "fp8e4m3, int8, causal, alibi, sinks, bias:AXES, kvpacked, qkvpacked, fwd, bwd";

[[noreturn]] void reject(std::string_view word, std::string_view why) {
  throw InvalidArgument("problem", concat("has the word '", word, "', ", why));
}

/// A whole number, all of `digits`.
template <class Number>
Number number(std::string_view digits, std::string_view word) {
  Number value{};
  const auto* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) {
    reject(word, concat("where '", digits, "' is not a number in range"));
  }
  return value;
}

std::vector<std::int64_t> number_list(std::string_view digits, std::string_view word) {
  std::vector<std::int64_t> values;
  for (std::size_t start = 0; start <= digits.size();) {
    const std::size_t comma = std::min(digits.find(',', start), digits.size());
    values.push_back(number<std::int64_t>(digits.substr(start, comma - start), word));
    start = comma + 1;
  }
  return values;
}

/// "7:0", "7:" (no limit to the right), ":0" (none to the left)
Window window(std::string_view sides, std::string_view word) {
  const std::size_t colon = sides.find(':');
  if (colon == std::string_view::npos)
    reject(word, "a window is wLEFT:RIGHT, either side may be empty");
  const auto side = [&](std::string_view digits) {
    return digits.empty() ? std::int64_t{-1} : number<std::int64_t>(digits, word);
  };
  return {side(sides.substr(0, colon)), side(sides.substr(colon + 1))};
}

Bias bias(std::string_view axes, std::string_view word) {
  Bias result{false, false, false};
  if (axes.starts_with('b')) result.per_batch = true, axes.remove_prefix(1);
  if (axes.starts_with('h')) result.per_head = true, axes.remove_prefix(1);
  if (axes.starts_with('q')) result.per_query = true, axes.remove_prefix(1);
  if (axes != "k")
    reject(word, "bias axes are those of b, h, q that it has, then k, as in bias:hqk");
  return result;
}

/// Words without a value. Returns false if `word` is none of them.
bool read_flag(std::string_view word, Problem& problem) {
  if (word == "causal") return problem.causal = true;
  if (word == "alibi") return problem.alibi = true;
  if (word == "sinks") return problem.sinks = true;
  if (word == "fwd") return problem.pass = Pass::forward, true;
  if (word == "bwd") return problem.pass = Pass::backward, true;
  if (word == "kvpacked") return problem.layout = Layout::kvpacked, true;
  if (word == "qkvpacked") return problem.layout = Layout::qkvpacked, true;
  if (const auto dtype = parse_dtype(word)) return problem.dtype = *dtype, true;
  return false;
}

/// Words of a key and a value.
void read_value(std::string_view key, std::string_view value, std::string_view word,
                Problem& problem) {
  const auto integer = [&] { return number<std::int64_t>(value, word); };
  const auto real = [&] { return number<double>(value, word); };
  if (key == "b")
    problem.batch = integer();
  else if (key == "s" || key == "sq")
    problem.seqlen_q = integer();
  else if (key == "sk")
    problem.seqlen_k = integer();
  else if (key == "h")
    problem.heads = integer();
  else if (key == "hk")
    problem.heads_k = integer();
  else if (key == "d")
    problem.dim = integer();
  else if (key == "dv")
    problem.dim_v = integer();
  else if (key == "lq")
    problem.lengths_q = number_list(value, word);
  else if (key == "lk")
    problem.lengths_k = number_list(value, word);
  else if (key == "w")
    problem.window = window(value, word);
  else if (key == "scale")
    problem.scale = real();
  else if (key == "cap")
    problem.softcap = real();
  else if (key == "drop")
    problem.dropout = real();
  else if (key == "seed")
    problem.dropout_seed = number<std::uint64_t>(value, word);
  else if (key == "bias:")
    problem.bias = bias(value, word);
  else
    reject(word, concat("which means nothing here; known words: ", kVocabulary));
}

/// Where the key of a word ends and its value begins.
std::size_t key_length(std::string_view word) {
  if (word.starts_with("bias:")) return 5;
  const auto letters =
      std::find_if_not(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return static_cast<std::size_t>(letters - word.begin());
}

/// The kind of thing a word sets, so that "fp16 bf16" or "s8 sq9" is caught as said twice.
std::string_view subject(std::string_view word, std::string_view key) {
  if (parse_dtype(word)) return "dtype";
  if (word == "fwd" || word == "bwd") return "pass";
  if (word == "kvpacked" || word == "qkvpacked") return "layout";
  return key == "s" ? "sq" : key;
}

/// What variable lengths imply where the text does not say.
void complete_lengths(Problem& problem, const std::set<std::string_view, std::less<>>& said) {
  if (problem.lengths_q.empty() && problem.lengths_k.empty()) return;
  if (problem.lengths_q.empty()) throw InvalidArgument("problem", "has lk without lq");
  if (problem.lengths_k.empty()) problem.lengths_k = problem.lengths_q;
  if (!said.contains("b")) problem.batch = static_cast<std::int64_t>(problem.lengths_q.size());
  if (!said.contains("sq"))
    problem.seqlen_q = *std::max_element(problem.lengths_q.begin(), problem.lengths_q.end());
  const auto longest = *std::max_element(problem.lengths_k.begin(), problem.lengths_k.end());
  if (!problem.seqlen_k && longest > problem.seqlen_q) problem.seqlen_k = longest;
}

}  // namespace

Problem Problem::parse(std::string_view text) {
  Problem problem;
  std::set<std::string_view, std::less<>> said;
  constexpr std::string_view kSpace = " \t\n";
  for (std::size_t start = text.find_first_not_of(kSpace); start != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, start), text.size());
    const std::string_view word = text.substr(start, end - start);
    const std::size_t split = key_length(word);
    if (!said.insert(subject(word, word.substr(0, split))).second) {
      reject(word, "which says again what an earlier word has set");
    }
    if (!read_flag(word, problem))
      read_value(word.substr(0, split), word.substr(split), word, problem);
    start = text.find_first_not_of(kSpace, end);
  }
  if (!said.contains("sq") && !said.contains("lq")) {
    throw InvalidArgument("problem", concat("'", text,
                                            "' has no length; give s (or sq and sk, or lq), as in "
                                            "'b2 sq4096 h16 hk4 d128 bf16 causal'"));
  }
  complete_lengths(problem, said);
  problem.validate();
  return problem;
}

std::string Problem::text() const {
  std::string out;
  const auto put = [&out](const auto&... parts) {
    if (!out.empty()) out += ' ';
    (append_text(out, parts), ...);
  };
  const auto side = [](std::int64_t keys) {
    return keys < 0 ? std::string() : std::to_string(keys);
  };
  const bool longest_is_implied =
      !lengths_q.empty() && seqlen_q == *std::max_element(lengths_q.begin(), lengths_q.end());
  put("b", batch);
  if (!longest_is_implied) put("sq", seqlen_q);
  if (seqlen_k) put("sk", *seqlen_k);
  if (varlen()) put("lq", joined(lengths_q, ","));
  if (lengths_k != lengths_q) put("lk", joined(lengths_k, ","));
  put("h", heads);
  if (heads_k) put("hk", *heads_k);
  put("d", dim);
  if (dim_v) put("dv", *dim_v);
  put(name_of(dtype));
  if (layout != Layout::separate) put(name_of(layout));
  if (causal) put("causal");
  if (window != Window{}) put("w", side(window.left), ":", side(window.right));
  if (scale) put("scale", *scale);
  if (softcap != 0) put("cap", softcap);
  if (alibi) put("alibi");
  if (sinks) put("sinks");
  if (bias) put("bias:", name_of(*bias));
  if (dropout != 0) put("drop", dropout);
  if (dropout_seed != 0) put("seed", dropout_seed);
  if (pass == Pass::backward) put("bwd");
  return out;
}

}  // namespace strobe
