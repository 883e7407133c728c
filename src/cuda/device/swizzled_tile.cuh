#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// Rows of a 16-bit operand in shared memory, as Hopper's units copy and multiply it: panels of 64
/// columns, one after the other, in which a row is a line of 128 bytes. Within a line the 16-byte
/// chunks are swizzled by the line's number, so that eight lines have a given chunk in eight
/// different places. The last panel is whole, with zeros behind the last column.
template <int rows, int columns>
struct SwizzledTile {
  static constexpr int kRows = rows;
  static constexpr int kPanelColumns = 64;
  static constexpr int kPanels = ceil_div(columns, kPanelColumns);
  static constexpr int kLineBytes = 128;
  static constexpr int kPanelBytes = rows * kLineBytes;
  static constexpr int kBytes = kPanels * kPanelBytes;
  static constexpr int kAlignment = 1024;  ///< of the first byte: eight lines
  static_assert(rows % 8 == 0);

  /// Where chunk `chunk`, 8 columns, of a row lies from the tile's beginning.
  STROBE_DEVICE static constexpr Word chunk_offset(Word row, Word chunk) {
    return chunk / 8 * kPanelBytes + row * kLineBytes + (chunk ^ row) % 8 * 16;
  }

  /// The tile as an operand whose inner axis are the columns: 16 of them from 16 · step on.
  STROBE_DEVICE static unsigned long long along_columns(Word tile, int step) {
    return describe(tile, 0) + static_cast<Word>(step / 4 * kPanelBytes + step % 4 * 32) / 16;
  }

  /// The tile as a right operand whose inner axis are the rows: 16 of them from 16 · step on.
  STROBE_DEVICE static unsigned long long along_rows(Word tile, int step) {
    return describe(tile, kPanelBytes) + static_cast<Word>(step * 16 * kLineBytes) / 16;
  }

 private:
  /// What the unit reads, in units of 16 bytes: where the operand begins, how far it is to the next
  /// 64 columns, which matters along rows alone, and to the next eight lines.
  STROBE_DEVICE static unsigned long long describe(Word tile, int panel_bytes) {
    constexpr unsigned long long kSwizzle128 = 1ULL << 62;
    constexpr unsigned long long kGroupBytes = 1024ULL / 16 << 32;
    return kSwizzle128 | kGroupBytes | static_cast<unsigned long long>(panel_bytes / 16) << 16 |
           (tile & 0x3FFFFU) / 16;
  }
};

}  // namespace strobe::cuda
