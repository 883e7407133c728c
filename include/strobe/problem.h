#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/dtype.h"
#include "strobe/export.h"

namespace strobe {

enum class Pass : std::uint8_t { forward, backward };

/// How q, k and v lie in memory. Kernels see strided views either way; tools use it to build
/// the tensors.
enum class Layout : std::uint8_t { separate, kvpacked, qkvpacked };

/// Sliding window in keys to each side of the query's own position; -1 means no limit. A right
/// limit of 0 still lets a query see its own position.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;

  bool operator==(const Window&) const = default;
};

/// An additive bias [batch or 1, heads or 1, seqlen_q or 1, seqlen_k] on the scaled (and capped)
/// logits, in the problem's dtype. Minus infinity hides a key. An axis set to false is broadcast.
struct Bias {
  bool per_batch = true;
  bool per_head = true;
  bool per_query = true;

  bool operator==(const Bias&) const = default;
};

/// Keys [begin, end) that a query may see.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

/// What is to be computed, and nothing about how. Use designated initialisers:
///
///     Problem{.batch = 2, .seqlen_q = 4096, .heads = 16, .heads_k = 4, .dim = 128, .causal = true}
///
/// Definition, for every batch entry and query head h (key head h / (heads / heads_k)):
///     x_ij = softcap(scale · q_i·k_j) + bias_ij − slope_h·|i + seqlen_k − seqlen_q − j|
///     p_ij = exp(x_ij) / (Σ_j' exp(x_ij') + exp(sink_h))      over the keys that i may see
///     o_i  = Σ_j keep_ij · p_ij / (1 − dropout) · v_j
/// A row that sees no key has output 0, LSE −∞ and gradients 0.
struct STROBE_API Problem {
  Pass pass = Pass::forward;

  std::int64_t batch = 1;
  std::int64_t seqlen_q = 0;               ///< with variable lengths: the longest allowed
  std::optional<std::int64_t> seqlen_k{};  ///< as seqlen_q if not set
  std::int64_t heads = 1;
  std::optional<std::int64_t> heads_k{};  ///< as heads if not set; must divide heads
  std::int64_t dim = 64;                  ///< of q and k, 1 to 512
  std::optional<std::int64_t> dim_v{};    ///< of v and the output; as dim if not set
  DType dtype = DType::bf16;
  Layout layout = Layout::separate;

  std::optional<double> scale{};  ///< 1/√dim if not set
  bool causal = false;            ///< aligned to the bottom right
  Window window{};                ///< aligned to the bottom right
  double softcap = 0;             ///< c·tanh(x/c) on the scaled logits; 0 is off
  bool alibi = false;             ///< slopes, fp32 [heads] or [batch, heads]
  bool sinks = false;             ///< one logit per head without a value, fp32 [heads]
  std::optional<Bias> bias{};
  double dropout = 0;  ///< probability of dropping, in [0, 1)
  std::uint64_t dropout_seed = 0;

  /// Variable length: one entry per sequence, q and k packed as [total, heads, dim]. Both empty
  /// for a dense batch. A plan made for these lengths serves any others within seqlen_q,
  /// seqlen_k and the totals.
  std::vector<std::int64_t> lengths_q{};
  std::vector<std::int64_t> lengths_k{};

  bool operator==(const Problem&) const = default;

  std::int64_t keys() const { return seqlen_k.value_or(seqlen_q); }
  std::int64_t kv_heads() const { return heads_k.value_or(heads); }
  std::int64_t group() const { return heads / kv_heads(); }
  std::int64_t value_dim() const { return dim_v.value_or(dim); }
  double softmax_scale() const;
  bool varlen() const { return !lengths_q.empty() || !lengths_k.empty(); }
  std::int64_t total_q() const;  ///< query rows of the whole batch
  std::int64_t total_k() const;

  /// Lengths of one sequence of the batch.
  std::int64_t length_q(std::int64_t sequence) const;
  std::int64_t length_k(std::int64_t sequence) const;

  /// Causal and window as one window.
  Window effective_window() const;

  /// Keys that query `i` may see in a sequence of these lengths, by mask and window alone.
  KeyRange visible(std::int64_t i, std::int64_t len_q, std::int64_t len_k) const;

  /// Throws InvalidArgument naming the first field that is wrong.
  void validate() const;

  /// The compact text form, e.g. "b2 sq4096 h16 hk4 d128 bf16 causal". Prints only what differs
  /// from the defaults; `parse(text()) == *this`.
  std::string text() const;

  /// Reads the text form; the result is validated. Throws InvalidArgument naming the word.
  static Problem parse(std::string_view text);
};

STROBE_API std::string_view name_of(Pass pass);
STROBE_API std::string_view name_of(Layout layout);

/// "bhqk" and so on: the axes a bias has of its own.
STROBE_API std::string name_of(const Bias& bias);

}  // namespace strobe
