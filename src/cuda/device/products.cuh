#pragma once
// Products of matrices in shared memory, a warp's share each. A matrix is named by the address of
// the first row and column that the warp needs; rows are a pitch apart.

#include "device/basics.cuh"
#include "device/ptx/shared_memory.cuh"

namespace strobe::cuda {

/// The products of one arithmetic. `steps_at_once` limits how many steps are unrolled: all of them
/// would be more code than the compiler can schedule with the registers at hand.
template <class Multiply, int steps_at_once>
struct Products {
  using Left = typename Multiply::Left;
  using Right = typename Multiply::Right;
  static constexpr int kStep = Multiply::kStep;
  static constexpr int kBytes = static_cast<int>(sizeof(typename Multiply::Element::Storage));

  /// sums += left · rightᵀ, with left [rows][inner] and right [columns][inner].
  template <int inner, int left_pitch, int right_pitch, class Sums>
  STROBE_DEVICE static void add_rows_times_rows(Sums& sums, Word left, Word right) {
    const int lane = lane_index();
    left += lane % 16 * left_pitch + lane / 16 * 16;
    right += (lane % 8 + lane / 16 * 8) * right_pitch + lane / 8 % 2 * 16;
#pragma unroll(steps_at_once)
    for (int step = 0; step < inner / kStep; ++step) {
      Left rows[Sums::kRowTiles];
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) {
        Word raw[4];
        ptx::load_matrices(raw, left + r * 16 * left_pitch + step * 32);
        rows[r] = Multiply::left(raw);
      }
#pragma unroll
      for (int c = 0; c < Sums::kColumnTiles / 2; ++c) {
        Word raw[4];
        ptx::load_matrices(raw, right + c * 16 * right_pitch + step * 32);
        const Right columns[2] = {Multiply::right(raw[0], raw[1]), Multiply::right(raw[2], raw[3])};
        add(sums, c, rows, columns);
      }
    }
  }

  /// sums += left · right, with left [rows][inner] and right [inner][columns].
  template <int inner, int left_pitch, int right_pitch, class Sums>
  STROBE_DEVICE static void add_rows_times_columns(Sums& sums, Word left, Word right) {
    left += Multiply::lane_offset_of_left(lane_index(), left_pitch);
    add_columns<inner, right_pitch>(sums, right, [&](int step, int row_tile) {
      return Multiply::load_left(left + row_tile * 16 * left_pitch + step * kStep * kBytes,
                                 left_pitch);
    });
  }

  /// sums += leftᵀ · right, with left [inner][rows] and right [inner][columns].
  template <int inner, int left_pitch, int right_pitch, class Sums>
  STROBE_DEVICE static void add_columns_times_columns(Sums& sums, Word left, Word right) {
    left += Multiply::lane_offset_of_left_rows(lane_index(), left_pitch);
    add_columns<inner, right_pitch>(sums, right, [&](int step, int row_tile) {
      return Multiply::load_left_rows(left + step * kStep * left_pitch + row_tile * 16 * kBytes,
                                      left_pitch);
    });
  }

 private:
  template <int inner, int right_pitch, class Sums, class LoadLeft>
  STROBE_DEVICE static void add_columns(Sums& sums, Word right, LoadLeft load_left) {
    right += Multiply::lane_offset_of_rows(lane_index(), right_pitch);
#pragma unroll(steps_at_once)
    for (int step = 0; step < inner / kStep; ++step) {
      Left rows[Sums::kRowTiles];
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) rows[r] = load_left(step, r);
#pragma unroll
      for (int c = 0; c < ceil_div(Sums::kColumnTiles, 2); ++c) {
        Right columns[2];
        Multiply::load_rows(columns, right + step * kStep * right_pitch + c * 16 * kBytes,
                            right_pitch);
        add(sums, c, rows, columns);
      }
    }
  }

  /// To two column tiles; the last may be alone.
  template <class Sums>
  STROBE_DEVICE static void add(Sums& sums, int pair, const Left (&left)[Sums::kRowTiles],
                                const Right (&right)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (2 * pair + i >= Sums::kColumnTiles) break;
#pragma unroll
      for (int r = 0; r < Sums::kRowTiles; ++r) {
        Multiply::add(sums.tile[r][2 * pair + i], left[r], right[i]);
      }
    }
  }
};

}  // namespace strobe::cuda
