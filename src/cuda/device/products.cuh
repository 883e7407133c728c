#pragma once
// Products of matrices in shared memory, a warp's share each. A matrix is named by the address of
// the first row and column that the warp needs; rows are a pitch apart.

#include "device/basics.cuh"
#include "device/ptx/again.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

/// A left operand that lies as [rows][inner], read step by step for each tile of 16 rows.
template <class Multiply, int pitch>
class LeftRows {
 public:
  STROBE_DEVICE explicit LeftRows(Word matrix)
      : address_(matrix + lane_index() % 16 * pitch + lane_index() / 16 * 16) {}

  STROBE_DEVICE auto get(int step, int row_tile) const {
    Word raw[4];
    ptx::load_matrices(raw, address_ + row_tile * 16 * pitch + step * 32);
    return Multiply::left(raw);
  }

  /// Of a last step that is only half there.
  STROBE_DEVICE auto get_half(int step, int row_tile) const {
    typename Multiply::HalfLeft half;
    ptx::load_two_matrices(half.words, address_ + row_tile * 16 * pitch + step * 32);
    return half;
  }

 private:
  Word address_;
};

/// The products of one arithmetic. `steps_at_once` limits how many steps are unrolled: all of them
/// would often be more code than the compiler can schedule with the registers at hand.
template <class Multiply, int steps_at_once>
struct Products {
  using Left = typename Multiply::Left;
  using Right = typename Multiply::Right;
  static constexpr int kStep = Multiply::kStep;
  static constexpr int kBytes = static_cast<int>(sizeof(typename Multiply::Element::Storage));

  /// sums += left · rightᵀ, with right [columns][inner] and left as LeftRows.
  template <int inner, int right_pitch, class Sums, class LeftOperand>
  STROBE_DEVICE static void add_times_rows(Sums& sums, const LeftOperand& left, Word right) {
    const Word first_right = right;
    right += (lane_index() % 8 + lane_index() / 16 * 8) * right_pitch + lane_index() / 8 % 2 * 16;
    if constexpr (inner % kStep != 0) {  // first, for after the others it takes more registers
      add_half_step<inner / kStep, right_pitch>(sums, left, first_right);
    }
#pragma unroll(steps_at_once)
    for (int step = 0; step < inner / kStep; ++step) {
      Left rows[Sums::kRowTiles];
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) rows[r] = left.get(step, r);
#pragma unroll
      for (int c = 0; c < Sums::kColumnTiles / 2; ++c) {
        Word raw[4];
        ptx::load_matrices(raw, right + c * 16 * right_pitch + step * 32);
        add(sums, 2 * c, rows, Multiply::right(raw[0], raw[1]));
        add(sums, 2 * c + 1, rows, Multiply::right(raw[2], raw[3]));
      }
    }
  }

  /// sums += left · right, with left [rows][inner] and right [inner][columns].
  template <int inner, int left_pitch, int right_pitch, class Sums>
  STROBE_DEVICE static void add_rows_times_columns(Sums& sums, Word left, Word right) {
    left += Multiply::lane_offset_of_left(lane_index(), left_pitch);
    add_times_columns<inner, right_pitch>(sums, right, [&](int step, int row_tile) {
      return Multiply::load_left(left + row_tile * 16 * left_pitch + step * kStep * kBytes,
                                 left_pitch);
    });
  }

  /// sums += leftᵀ · right, with left [inner][rows] and right [inner][columns].
  template <int inner, int left_pitch, int right_pitch, class Sums>
  STROBE_DEVICE static void add_columns_times_columns(Sums& sums, Word left, Word right) {
    left += Multiply::lane_offset_of_left_rows(lane_index(), left_pitch);
    add_times_columns<inner, right_pitch>(sums, right, [&](int step, int row_tile) {
      return Multiply::load_left_rows(left + step * kStep * left_pitch + row_tile * 16 * kBytes,
                                      left_pitch);
    });
  }

  /// sums += left · right, with right [inner][columns]; `load_left` gives left for a step and a
  /// tile of rows.
  template <int inner, int right_pitch, class Sums, class LoadLeft>
  STROBE_DEVICE static void add_times_columns(Sums& sums, Word right, LoadLeft load_left) {
    constexpr int kPairs = Sums::kColumnTiles / 2;
    right += Multiply::lane_offset_of_rows(lane_index(), right_pitch);
#pragma unroll(steps_at_once)
    for (int step = 0; step < inner / kStep; ++step) {
      const Word step_right = right + step * kStep * right_pitch;
      Left rows[Sums::kRowTiles];
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) rows[r] = load_left(step, r);
      if constexpr (Sums::kColumnTiles % 2 != 0) {
        add(sums, 2 * kPairs, rows,
            Multiply::load_rows_once(step_right + kPairs * 16 * kBytes, right_pitch));
      }
#pragma unroll
      for (int c = 0; c < kPairs; ++c) {
        Right columns[2];
        Multiply::load_rows(columns, step_right + c * 16 * kBytes, right_pitch);
        add(sums, 2 * c, rows, columns[0]);
        add(sums, 2 * c + 1, rows, columns[1]);
        if constexpr (Multiply::kLoadsOneByOne) __syncwarp();
      }
    }
  }

 private:
  template <int step, int right_pitch, class Sums, class LeftOperand>
  STROBE_DEVICE static void add_half_step(Sums& sums, const LeftOperand& left, Word right) {
    right += ptx::again(lane_index()) % 16 * right_pitch;
    typename Multiply::HalfLeft rows[Sums::kRowTiles];
#pragma unroll
    for (int r = 0; r < Sums::kRowTiles; ++r) rows[r] = left.get_half(step, r);
#pragma unroll
    for (int c = 0; c < Sums::kColumnTiles; c += 2) {
      Word columns[2];
      ptx::load_two_matrices(columns, right + c * 8 * right_pitch + step * 32);
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) {
        Multiply::add_half(sums.tile[r][c], rows[r], columns[0]);
        Multiply::add_half(sums.tile[r][c + 1], rows[r], columns[1]);
      }
    }
  }

  template <class Sums>
  STROBE_DEVICE static void add(Sums& sums, int column_tile, const Left (&left)[Sums::kRowTiles],
                                const Right& right) {
#pragma unroll
    for (int r = 0; r < Sums::kRowTiles; ++r) {
      Multiply::add(sums.tile[r][column_tile], left[r], right);
    }
  }
};

}  // namespace strobe::cuda
