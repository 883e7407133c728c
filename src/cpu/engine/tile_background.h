#pragma once
// Products that a matrix unit does while the vector units compute something else: they are queued,
// and whoever computes lets the queue advance by a few instructions now and then. The processor
// works on both at once as long as neither gets hundreds of instructions ahead of the other.

#include "cpu/engine/tile_product.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

template <class Unit, int terms>
class TileBackground {
 public:
  /// Wanted by the next finish_urgent.
  void urgent(const TileProduct& product) { urgent_.push(product); }
  /// Wanted by the next finish, whenever that is.
  void later(const TileProduct& product) { later_.push(product); }

  /// Shares what is queued out over `turns` calls of advance, what is for later over `rounds` times
  /// as many.
  void pace(std::int64_t turns, std::int64_t rounds) {
    turns_ = turns;
    steps_ = urgent_.steps() + (later_.steps() + rounds - 1) / rounds;
    credit_ = 0;
  }
  STROBE_INLINE void advance() {
    for (credit_ += steps_; credit_ >= turns_; credit_ -= turns_) {
      if (current_ == nullptr && !take_next()) return;
      step();
    }
  }

  void finish_urgent() {
    finish_block();
    for (; !urgent_.empty(); urgent_.pop()) finish_product(urgent_.front());
  }
  void finish() {
    finish_urgent();
    for (; !later_.empty(); later_.pop()) finish_product(later_.front());
  }

 private:
  using Pairs = TermPairs<terms>;

  struct Queue {
    static constexpr int kRoom = 4;
    TileProduct products[kRoom];
    int first = 0;
    int last = 0;

    bool empty() const { return first == last; }
    TileProduct& front() { return products[first]; }
    void pop() { ++first; }
    void push(const TileProduct& product) {
      if (empty()) first = last = 0;
      products[last++] = product;
    }
    std::int64_t steps() const {
      std::int64_t count = 0;
      for (int i = first; i < last; ++i)
        count += products[i].blocks() * products[i].steps * Pairs::kCount;
      return count;
    }
  };

  /// Begins the next block of results, if there is one: its sums are in the unit's registers until
  /// it is done. Blocks that are not two by two are done at once.
  STROBE_INLINE bool take_next() {
    Queue& queue = urgent_.empty() ? later_ : urgent_;
    if (queue.empty()) return false;
    TileProduct& product = queue.front();
    if (product.whole()) {
      current_ = &product;
      left_ = product.left;
      right_ = product.block_right();
      steps_left_ = product.steps;
      pair_ = 0;
      Unit unit;
      begin<2, 2>(unit, product);
      return true;
    }
    narrow_block(product);
    product.next_block();
    if (product.done()) queue.pop();
    return take_next_again();
  }
  __attribute__((noinline)) bool take_next_again() { return take_next(); }

  /// One pair of terms, one step along the sum.
  STROBE_INLINE void step() {
    TileProduct& product = *current_;
    Unit unit;
    if (changes(Pairs::left))
      unit.template load_left<2>(left_ + Pairs::left[pair_] * kTileSize, product.left_row);
    if (changes(Pairs::right))
      unit.template load_right<2>(right_ + Pairs::right[pair_] * kTileSize, product.right_column);
    unit.template multiply<2, 2>();
    if constexpr (Pairs::kCount > 1) {
      if (++pair_ < Pairs::kCount) return;
      pair_ = 0;
    }
    left_ += product.left_step;
    right_ += product.right_step;
    if (--steps_left_ > 0) return;
    end<2, 2>(unit, product);
    current_ = nullptr;
    product.next_block();
    if (!product.done()) return;
    if (!urgent_.empty() && &product == &urgent_.front())
      urgent_.pop();
    else
      later_.pop();
  }

  /// Whether this side's term is another than in the pair before.
  template <int count>
  STROBE_INLINE bool changes(const int (&term)[count]) const {
    return pair_ == 0 || term[pair_] != term[pair_ - 1];
  }

  void finish_block() {
    while (current_ != nullptr) step();
  }

  static void finish_product(TileProduct& product) {
    for (; !product.done(); product.next_block()) {
      if (product.whole())
        block<2, 2>(product);
      else
        narrow_block(product);
    }
  }

  __attribute__((noinline)) static void narrow_block(const TileProduct& product) {
    if (product.rows >= 2)
      block<2, 1>(product);
    else if (product.column + 2 <= product.columns)
      block<1, 2>(product);
    else
      block<1, 1>(product);
  }

  /// A block from begin to end.
  template <int rows, int columns>
  static STROBE_INLINE void block(const TileProduct& product) {
    Unit unit;
    begin<rows, columns>(unit, product);
    const std::uint16_t* left = product.left;
    const std::uint16_t* right = product.block_right();
    for (std::int64_t k = 0; k < product.steps; ++k) {
      each_pair<rows, columns, 0>(unit, left, product.left_row, right, product.right_column);
      left += product.left_step;
      right += product.right_step;
    }
    end<rows, columns>(unit, product);
  }

  template <int rows, int columns>
  static STROBE_INLINE void begin(Unit& unit, const TileProduct& product) {
    unit.template begin<rows, columns>(product.into == Into::sums, product.block_c(),
                                       product.stride);
  }
  template <int rows, int columns>
  static STROBE_INLINE void end(Unit& unit, const TileProduct& product) {
    if (product.into == Into::whole) return add_whole<rows, columns>(unit, product);
    unit.template end<rows, columns>(product.block_c(), product.stride);
  }
  template <int rows, int columns>
  __attribute__((noinline)) static void add_whole(Unit& unit, const TileProduct& product) {
    constexpr std::int64_t kStride = 2 * kTile;
    alignas(64) float sums[2 * kTile * kStride];
    unit.template end<rows, columns>(sums, kStride);
    for (std::int64_t i = 0; i < rows * kTile; ++i) {
      for (std::int64_t j = 0; j < columns * kTile; j += kWidth) {
        float* c = product.block_c() + i * product.stride + j;
        store(c, load(c) + load(sums + i * kStride + j));
      }
    }
  }

  template <int rows, int columns, int pair>
  static STROBE_INLINE void each_pair(Unit& unit, const std::uint16_t* left, std::int64_t left_row,
                                      const std::uint16_t* right, std::int64_t right_column) {
    constexpr int kLeft = Pairs::left[pair];
    constexpr int kRight = Pairs::right[pair];
    constexpr bool kNewLeft = pair == 0 || kLeft != Pairs::left[pair == 0 ? 0 : pair - 1];
    constexpr bool kNewRight = pair == 0 || kRight != Pairs::right[pair == 0 ? 0 : pair - 1];
    if constexpr (kNewLeft) unit.template load_left<rows>(left + kLeft * kTileSize, left_row);
    if constexpr (kNewRight)
      unit.template load_right<columns>(right + kRight * kTileSize, right_column);
    unit.template multiply<rows, columns>();
    if constexpr (pair + 1 < Pairs::kCount)
      each_pair<rows, columns, pair + 1>(unit, left, left_row, right, right_column);
  }

  Queue urgent_{};
  Queue later_{};
  TileProduct* current_ = nullptr;  // the product whose block is in work
  const std::uint16_t* left_ = nullptr;
  const std::uint16_t* right_ = nullptr;
  std::int64_t steps_left_ = 0;
  int pair_ = 0;
  std::int64_t turns_ = 1;
  std::int64_t steps_ = 0;
  std::int64_t credit_ = 0;
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
