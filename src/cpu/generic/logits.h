#pragma once
// From raw scores to logits: scale, softcap, bias, ALiBi, mask, dropout, on a block of scores
// [keys][lanes] with a panel's queries in the lanes.

#include "cpu/generic/panel.h"
#include "cpu/generic/scratch.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// A panel of queries against `keys` keys from `key` on.
template <int lanes>
struct Block {
  const Panel<lanes>& panel;
  std::int64_t key;
  std::int64_t keys;

  const HeadTask& task() const { return *panel.head[0]; }  // what all its lanes share
  std::int64_t size() const { return keys * lanes; }
};

/// Applies body(offset, vector index) to every vector of `rows` rows.
template <int lanes, class Body>
STROBE_INLINE void for_each_vector(std::int64_t rows, Body&& body) {
  for (std::int64_t j = 0; j < rows; ++j) {
    for (int v = 0; v < lanes / kWidth; ++v) body(j * lanes + v * kWidth, v);
  }
}

/// One number per lane, as vectors.
template <int lanes>
struct LaneValues {
  template <class Value>
  explicit LaneValues(Value&& value) {
    for (int lane = 0; lane < lanes; ++lane) values[lane] = value(lane);
  }
  Vec operator[](int v) const { return load(values + v * kWidth); }

  float values[lanes];
};

inline void apply_scale(std::int64_t size, float scale, float* scores) {
  for (std::int64_t i = 0; i < size; i += kWidth)
    store(scores + i, load(scores + i) * splat(scale));
}

/// x = c tanh(x / c); if `slope` is given it receives the derivative 1 - tanh^2.
inline void apply_softcap(float softcap, std::int64_t size, float* scores, float* slope) {
  const Vec cap = splat(softcap);
  const Vec inverse = splat(1.0F / softcap);
  for (std::int64_t i = 0; i < size; i += kWidth) {
    const Tanh t = tanh(load(scores + i) * inverse);
    store(scores + i, t.value * cap);
    if (slope != nullptr) store(slope + i, t.slope);
  }
}

/// Adds the bias, turned to [keys][lanes] in `turned`. Minus infinity hides the key even where
/// the score is NaN.
template <int lanes>
inline void apply_bias(const Block<lanes>& block, float* scores, float* turned) {
  const DType dtype = block.task().dtype;
  const auto row = [&](std::int64_t lane) -> const void* {
    return static_cast<const char*>(block.panel.row_of(&HeadTask::bias, lane)) +
           block.key * bytes_of(dtype);
  };
  pack_transposed(row, dtype, block.panel.count, block.keys, lanes, turned);
  for (std::int64_t i = 0; i < block.size(); i += kWidth) {
    const Vec b = load(turned + i);
    store(scores + i, select(equal(b, splat(-kInfinity)), b, load(scores + i) + b));
  }
}

/// The lanes' positions among the keys, counted from the block's first key so that distances are
/// exact in float up to 2^24.
template <int lanes>
inline LaneValues<lanes> positions(const Block<lanes>& block) {
  const std::int64_t shift = block.task().len_k - block.task().len_q - block.key;
  return LaneValues<lanes>(
      [&](int lane) { return static_cast<float>(block.panel.query[lane] + shift); });
}

template <int lanes>
inline void apply_alibi(const Block<lanes>& block, float* scores) {
  const LaneValues<lanes> slope([&](int lane) { return -block.panel.head[lane]->alibi_slope; });
  const LaneValues<lanes> position = positions(block);
  for (std::int64_t j = 0; j < block.keys; ++j) {
    for (int v = 0; v < lanes / kWidth; ++v) {
      float* x = scores + j * lanes + v * kWidth;
      store(x, load(x) + slope[v] * abs(position[v] - splat(static_cast<float>(j))));
    }
  }
}

/// Hides what the window does not show: sets it to minus infinity.
template <int lanes>
inline void apply_mask(const Block<lanes>& block, float* scores) {
  const HeadTask& task = block.task();
  // Bounds are clamped to just outside the block, so that they stay exact in float.
  const auto bound = [&](int lane, std::int64_t reach) {
    const std::int64_t position =
        block.panel.query[lane] + task.len_k - task.len_q - block.key + reach;
    return static_cast<float>(larger(-1, smaller(block.keys, position)));
  };
  const LaneValues<lanes> low(
      [&](int lane) { return task.window_left < 0 ? -1.0F : bound(lane, -task.window_left); });
  const LaneValues<lanes> high([&](int lane) {
    return task.window_right < 0 ? static_cast<float>(block.keys) : bound(lane, task.window_right);
  });
  for (std::int64_t j = 0; j < block.keys; ++j) {
    const Vec key = splat(static_cast<float>(j));
    for (int v = 0; v < lanes / kWidth; ++v) {
      float* x = scores + j * lanes + v * kWidth;
      const Vec seen = select(less(key, low[v]), splat(-kInfinity), load(x));
      store(x, select(less(high[v], key), splat(-kInfinity), seen));
    }
  }
}

/// Whether nothing is to be done to raw scores but to multiply them.
inline bool are_only_scaled(const HeadTask& task, Coverage covered) {
  return task.softcap == 0 && task.bias.data == nullptr && !task.has_alibi &&
         covered == Coverage::all && task.scale > 0;
}

/// Raw scores to logits, `rows` rows of which the block's keys come first and the rest is padding.
/// Returns the scale that is still to be applied: where there is nothing else to do, whoever reads
/// the scores multiplies. `slope` as in apply_softcap, `turned` [rows][lanes].
template <int lanes>
inline float finish_logits(const Block<lanes>& block, Coverage covered, std::int64_t rows,
                           float* scores, float* slope, float* turned) {
  const HeadTask& task = block.task();
  fill(scores + block.size(), (rows - block.keys) * lanes, -kInfinity);
  if (are_only_scaled(task, covered)) return task.scale;
  apply_scale(block.size(), task.scale, scores);
  if (task.softcap != 0) {
    apply_softcap(task.softcap, block.size(), scores, slope);
    if (slope != nullptr) fill(slope + block.size(), (rows - block.keys) * lanes, 0.0F);
  }
  if (task.bias.data != nullptr) apply_bias(block, scores, turned);
  if (task.has_alibi) apply_alibi(block, scores);
  if (covered == Coverage::some) apply_mask(block, scores);
  return 1.0F;
}

/// Ten rounds of Philox4x32 for the panel's queries and one group of four keys; the same function
/// as strobe::philox, on arrays so that the compiler can use the lanes.
template <int lanes>
struct PhiloxPanel {
  std::uint32_t word[4][lanes];

  void draw(const Panel<lanes>& panel, std::int64_t key_group) {
    for (int i = 0; i < lanes; ++i) {
      word[0][i] = static_cast<std::uint32_t>(key_group);
      word[1][i] = static_cast<std::uint32_t>(panel.query[i]);
      word[2][i] = panel.head[i]->head;
      word[3][i] = panel.head[i]->sequence;
    }
    std::uint32_t key0 = panel.head[0]->seed[0];
    std::uint32_t key1 = panel.head[0]->seed[1];
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9U, key1 += 0xBB67AE85U) {
      for (int i = 0; i < lanes; ++i) {
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

/// keep[key][lane] = 0 where the element is dropped, 1 / (1 - p) where it stays; the rows past the
/// block's keys up to `rows` are dropped.
template <int lanes>
inline void draw_dropout(const Block<lanes>& block, std::int64_t rows, float* keep) {
  const HeadTask& task = block.task();
  fill(keep + block.size(), (rows - block.keys) * lanes, 0.0F);
  PhiloxPanel<lanes> random;
  for (std::int64_t key = block.key / 4 * 4; key < block.key + block.keys; key += 4) {
    random.draw(block.panel, key / 4);
    for (std::int64_t w = 0; w < 4; ++w) {
      const std::int64_t j = key + w - block.key;
      if (j < 0 || j >= block.keys) continue;
      for (int i = 0; i < lanes; ++i) {
        keep[j * lanes + i] =
            random.word[w][i] >= task.dropout_threshold ? task.dropout_scale : 0.0F;
      }
    }
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
