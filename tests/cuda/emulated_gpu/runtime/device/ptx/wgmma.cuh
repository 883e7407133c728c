#pragma once

#include "device/ptx/math.cuh"

namespace strobe::cuda::ptx {

enum class HalfType { bf16, fp16 };
enum class RightOrder { inner, columns };

constexpr Word kPoison = 0x7FBADBADU;  // a NaN that nobody computes

template <HalfType type>
float widen_half(Word half) {
  if (type == HalfType::bf16) return __uint_as_float(half << 16);
  return widen_fp16(static_cast<unsigned short>(half));
}

/// An operand in shared memory, as the bits of its descriptor tell.
class SharedOperand {
 public:
  explicit SharedOperand(unsigned long long bits)
      : address_(field(bits, 0)), leading_(field(bits, 16)), stride_(field(bits, 32)) {
    constexpr unsigned long long kKnown = 0xC00E3FFF3FFF3FFFULL;
    emulated::Block& block = *emulated::Block::current;
    if ((bits & ~kKnown) != 0) block.fail("a descriptor has bits that mean nothing");
    if ((bits >> 49 & 7) != 0) block.fail("a base offset is not emulated");
    const unsigned swizzle = static_cast<unsigned>(bits >> 62);
    if (swizzle == 0) block.fail("an operand without swizzle is not emulated");
    line_ = 256U >> swizzle;
  }

  /// The 16 bits of an element, `at` along the rows of the left or the columns of the right
  /// operand.
  Word element(RightOrder order, Word at, Word inner) const {
    Word plain = address_;
    if (order == RightOrder::inner) {
      plain += at % 8 * line_ + at / 8 * stride_ + inner * 2;
    } else {
      const Word columns = line_ / 2;
      plain += at % columns * 2 + at / columns * leading_ + inner % 8 * line_ + inner / 8 * stride_;
    }
    const Word swizzled = plain ^ (plain >> 7 & (line_ / 16 - 1)) << 4;
    emulated::Block& block = *emulated::Block::current;
    std::uint16_t value;
    std::memcpy(&value, block.shared(swizzled, 2), 2);
    if (block.units.unseen[swizzled / 16] > 0) {
      block.fail("a product reads what was written and not shown to the unit");
    }
    return value;
  }

 private:
  static Word field(unsigned long long bits, int first) {
    return static_cast<Word>(bits >> first & 0x3FFF) << 4;
  }

  Word address_;
  Word leading_;
  Word stride_;
  Word line_ = 0;
};

/// sums += left · right, for what this lane has of them. `left(row, inner)` with rows 0 and 1,
/// which are 8 apart.
template <HalfType type, RightOrder order, class Left>
void multiply(std::vector<float>& sums, Left left, const SharedOperand& right) {
  const Word member = emulated::Block::thread->lane() % 4;
  emulated::Block::current->multiplied(static_cast<long>(sums.size()) * 16);
  float rows[2][16];
  for (Word k = 0; k < 16; ++k) {
    for (Word r = 0; r < 2; ++r) rows[r][k] = widen_half<type>(left(r, k));
  }
  for (std::size_t tile = 0; tile < sums.size() / 4; ++tile) {
    for (Word i = 0; i < 2; ++i) {
      const Word column = static_cast<Word>(tile) * 8 + member * 2 + i;
      double total[2] = {sums[tile * 4 + i], sums[tile * 4 + 2 + i]};
      for (Word k = 0; k < 16; ++k) {
        const auto b = static_cast<double>(widen_half<type>(right.element(order, column, k)));
        for (Word r = 0; r < 2; ++r) total[r] += static_cast<double>(rows[r][k]) * b;
      }
      for (Word r = 0; r < 2; ++r) sums[tile * 4 + r * 2 + i] = static_cast<float>(total[r]);
    }
  }
}

/// Takes the sums from the thread until they are waited for.
inline void issue(float* sums, std::size_t count, bool add,
                  std::function<void(std::vector<float>&)> compute) {
  auto& units = emulated::Block::thread->units;
  if (!units.fenced) {
    emulated::Block::current->fail("a product starts without a fence of its registers");
  }
  const auto [place, fresh] = units.sums.try_emplace(sums);
  if (fresh) {
    place->second.values.assign(sums, sums + count);
    std::fill_n(reinterpret_cast<Word*>(sums), count, kPoison);
  }
  ++place->second.products;
  units.open_products.push_back({sums, [add, compute](std::vector<float>& values) {
                                   if (!add) std::fill(values.begin(), values.end(), 0.0F);
                                   compute(values);
                                 }});
}

template <HalfType type, RightOrder order, int tiles>
void wgmma(float (&sums)[tiles][4], unsigned long long left, unsigned long long right, bool add) {
  issue(&sums[0][0], tiles * 4, add, [=](std::vector<float>& values) {
    const SharedOperand rows(left);
    const Word first = emulated::Block::thread->number / 32 % 4 * 16;
    const Word group = emulated::Block::thread->lane() / 4;
    multiply<type, order>(
        values,
        [&](Word r, Word k) { return rows.element(RightOrder::inner, first + group + 8 * r, k); },
        SharedOperand(right));
  });
}

template <HalfType type, RightOrder order, int tiles>
void wgmma(float (&sums)[tiles][4], const Word (&left)[4], unsigned long long right, bool add) {
  struct Words {
    Word of[4];
  } issued;
  std::memcpy(issued.of, left, sizeof left);
  const Word* const now = left;
  issue(&sums[0][0], tiles * 4, add, [=](std::vector<float>& values) {
    if (std::memcmp(issued.of, now, sizeof issued.of) != 0) {
      emulated::Block::current->fail("the registers of a product change while it runs");
    }
    const auto all = emulated::Block::current->exchange(issued);
    Words near[4];
    const unsigned lane = emulated::Block::thread->lane();
    for (unsigned i = 0; i < 4; ++i) near[i] = emulated::shown<Words>(all, lane / 4 * 4 + i);
    multiply<type, order>(
        values,
        [&](Word r, Word k) { return near[k % 8 / 2].of[r + k / 8 * 2] >> k % 2 * 16 & 0xFFFFU; },
        SharedOperand(right));
  });
}

inline void wgmma_fence() {
  emulated::Block::thread->units.fenced = true;
}

inline void compute_next_group(emulated::ThreadUnits& units) {
  for (emulated::Product& product : units.groups[units.computed]) {
    product.compute(units.sums[product.sums].values);
  }
  ++units.computed;
}

inline void wgmma_commit() {
  auto& units = emulated::Block::thread->units;
  units.groups.push_back(std::exchange(units.open_products, {}));
  // By chance, but all lanes of a warp alike.
  unsigned draw = emulated::Block::thread->number / 32 * 7919 + ++units.commits;
  draw = (draw ^ draw >> 5) * 0x85EBCA6BU;
  draw = (draw ^ draw >> 13) * 0xC2B2AE35U;
  if (draw >> 16 & 1) {
    while (units.computed < units.groups.size()) compute_next_group(units);
  }
}

template <int kPending>
void wgmma_wait() {
  auto& units = emulated::Block::thread->units;
  units.fenced = false;
  while (units.groups.size() > kPending) {
    if (units.computed == 0) compute_next_group(units);
    for (const emulated::Product& product : units.groups.front()) {
      emulated::Sums& sums = units.sums[product.sums];
      if (--sums.products > 0) continue;
      for (std::size_t i = 0; i < sums.values.size(); ++i) {
        if (__float_as_uint(product.sums[i]) != kPoison) {
          emulated::Block::current->fail("the sums of a product change while it runs");
        }
        product.sums[i] = sums.values[i];
      }
      units.sums.erase(product.sums);
    }
    units.groups.erase(units.groups.begin());
    --units.computed;
  }
}

template <class T, int kTiles>
void pin(T (&)[kTiles][4]) {}

}  // namespace strobe::cuda::ptx
