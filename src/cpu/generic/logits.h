#pragma once
// From raw scores to logits: softcap, bias, ALiBi, mask, dropout, on a block of scores
// [keys][kPanel] with the panel's queries in the lanes.

#include "cpu/generic/multiply.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// `count` queries from `query` on (at most kPanel) against `keys` keys from `key` on.
struct Block {
  std::int64_t query;
  std::int64_t count;
  std::int64_t key;
  std::int64_t keys;
};

enum class Coverage { none, some, all };

/// Keys that queries [first, last] may see at all: the union over its rows.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

inline Span visible_keys(const HeadTask& task, std::int64_t first, std::int64_t last) {
  const std::int64_t shift = task.len_k - task.len_q;
  const std::int64_t begin = task.window_left < 0 ? 0 : larger(0, first + shift - task.window_left);
  const std::int64_t end = task.window_right < 0
                               ? task.len_k
                               : smaller(task.len_k, last + shift + task.window_right + 1);
  return {begin, larger(begin, end)};
}

/// Queries that may see any of the keys [first, last].
inline Span seeing_queries(const HeadTask& task, std::int64_t first, std::int64_t last) {
  const std::int64_t shift = task.len_k - task.len_q;
  const std::int64_t begin =
      task.window_right < 0 ? 0 : larger(0, first - shift - task.window_right);
  const std::int64_t end =
      task.window_left < 0 ? task.len_q : smaller(task.len_q, last - shift + task.window_left + 1);
  return {begin, larger(begin, end)};
}

/// How much of the block the mask leaves.
inline Coverage coverage(const HeadTask& task, const Block& block) {
  const std::int64_t shift = task.len_k - task.len_q;
  const std::int64_t first = block.query + shift;
  const std::int64_t last = first + block.count - 1;
  const std::int64_t last_key = block.key + block.keys - 1;
  const bool left = task.window_left >= 0;
  const bool right = task.window_right >= 0;
  if ((right && block.key > last + task.window_right) ||
      (left && last_key < first - task.window_left)) {
    return Coverage::none;
  }
  const bool all_right = !right || last_key <= first + task.window_right;
  const bool all_left = !left || block.key >= last - task.window_left;
  return all_right && all_left ? Coverage::all : Coverage::some;
}

/// Applies body(row, vector index) to every vector of the block; rows start kPanel apart.
template <class Body>
STROBE_INLINE void for_each_vector(std::int64_t keys, Body&& body) {
  for (std::int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kTileVecs; ++v) body(j, v);
  }
}

/// x = c tanh(x / c); if `slope` is given it receives the derivative 1 - tanh^2.
inline void apply_softcap(const HeadTask& task, std::int64_t keys, float* scores, float* slope) {
  const Vec cap = splat(task.softcap);
  const Vec inverse = splat(1.0F / task.softcap);
  for_each_vector(keys, [&](std::int64_t j, int v) {
    float* x = scores + j * kPanel + v * kWidth;
    const Tanh t = tanh(load(x) * inverse);
    store(x, t.value * cap);
    if (slope != nullptr) store(slope + j * kPanel + v * kWidth, t.slope);
  });
}

/// Adds the bias, turned to [keys][kPanel] in `turned`. Minus infinity hides the key even where
/// the score is NaN.
inline void apply_bias(const HeadTask& task, const Block& block, float* scores, float* turned,
                       float* staging) {
  Rows bias = task.bias;
  const std::int64_t offset = block.key * (task.dtype == DType::fp32 ? 4 : 2);
  bias.data = static_cast<char*>(bias.data) + offset;
  pack_transposed(bias, task.dtype, block.query, block.count, block.keys, kPanel, turned, staging);
  for_each_vector(block.keys, [&](std::int64_t j, int v) {
    float* x = scores + j * kPanel + v * kWidth;
    const Vec b = load(turned + j * kPanel + v * kWidth);
    store(x, select(equal(b, splat(-kInfinity)), b, load(x) + b));
  });
}

/// Query positions of the lanes, counted from the block's first key so that distances are exact in
/// float up to 2^24.
inline Vec lane_positions(const HeadTask& task, const Block& block, int v) {
  const std::int64_t first = block.query + task.len_k - task.len_q - block.key + v * kWidth;
  return splat(static_cast<float>(first)) + iota();
}

inline void apply_alibi(const HeadTask& task, const Block& block, float* scores) {
  const Vec slope = splat(-task.alibi_slope);
  for_each_vector(block.keys, [&](std::int64_t j, int v) {
    float* x = scores + j * kPanel + v * kWidth;
    const Vec distance = abs(lane_positions(task, block, v) - splat(static_cast<float>(j)));
    store(x, load(x) + slope * distance);
  });
}

/// Hides what the window does not show: sets it to minus infinity.
inline void apply_mask(const HeadTask& task, const Block& block, float* scores) {
  // Bounds are clamped to just outside the block, so that they stay exact in float.
  const auto bound = [&](std::int64_t lane, std::int64_t reach) {
    const std::int64_t position = block.query + lane + task.len_k - task.len_q - block.key + reach;
    return static_cast<float>(larger(-1, smaller(block.keys, position)));
  };
  float low[kPanel];   // first key the lane sees
  float high[kPanel];  // last
  for (int lane = 0; lane < kPanel; ++lane) {
    low[lane] = task.window_left < 0 ? -1.0F : bound(lane, -task.window_left);
    high[lane] =
        task.window_right < 0 ? static_cast<float>(block.keys) : bound(lane, task.window_right);
  }
  for_each_vector(block.keys, [&](std::int64_t j, int v) {
    float* x = scores + j * kPanel + v * kWidth;
    const Vec key = splat(static_cast<float>(j));
    const Vec seen = select(less(key, load(low + v * kWidth)), splat(-kInfinity), load(x));
    store(x, select(less(load(high + v * kWidth), key), splat(-kInfinity), seen));
  });
}

/// Scores (already scaled) to logits. `slope` as in apply_softcap, `turned` [keys][kPanel].
inline void finish_logits(const HeadTask& task, const Block& block, Coverage covered, float* scores,
                          float* slope, float* turned, float* staging) {
  if (task.softcap != 0) apply_softcap(task, block.keys, scores, slope);
  if (task.bias.data != nullptr) apply_bias(task, block, scores, turned, staging);
  if (task.has_alibi) apply_alibi(task, block, scores);
  if (covered == Coverage::some) apply_mask(task, block, scores);
}

/// Ten rounds of Philox4x32 for the panel's queries and one group of four keys; the same function
/// as strobe::philox, on arrays so that the compiler can use the lanes.
struct PhiloxPanel {
  std::uint32_t word[4][kPanel];

  void draw(const HeadTask& task, std::int64_t query, std::int64_t key_group) {
    for (int i = 0; i < kPanel; ++i) {
      word[0][i] = static_cast<std::uint32_t>(key_group);
      word[1][i] = static_cast<std::uint32_t>(query + i);
      word[2][i] = task.head;
      word[3][i] = task.sequence;
    }
    std::uint32_t key0 = task.seed[0];
    std::uint32_t key1 = task.seed[1];
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9U, key1 += 0xBB67AE85U) {
      for (int i = 0; i < kPanel; ++i) {
        const std::uint64_t a = 0xD2511F53ULL * word[0][i];
        const std::uint64_t b = 0xCD9E8D57ULL * word[2][i];
        word[0][i] = static_cast<std::uint32_t>(b >> 32) ^ word[1][i] ^ key0;
        word[1][i] = static_cast<std::uint32_t>(b);
        word[2][i] = static_cast<std::uint32_t>(a >> 32) ^ word[3][i] ^ key1;
        word[3][i] = static_cast<std::uint32_t>(a);
      }
    }
  }
};

/// keep[key][lane] = 0 where the element is dropped, 1 / (1 - p) where it stays.
inline void draw_dropout(const HeadTask& task, const Block& block, float* keep) {
  PhiloxPanel random;
  for (std::int64_t key = block.key / 4 * 4; key < block.key + block.keys; key += 4) {
    random.draw(task, block.query, key / 4);
    for (std::int64_t w = 0; w < 4; ++w) {
      const std::int64_t j = key + w - block.key;
      if (j < 0 || j >= block.keys) continue;
      for (int i = 0; i < kPanel; ++i) {
        keep[j * kPanel + i] =
            random.word[w][i] >= task.dropout_threshold ? task.dropout_scale : 0.0F;
      }
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
