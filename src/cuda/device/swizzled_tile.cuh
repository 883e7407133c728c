#pragma once

#include "device/basics.cuh"
#include "device/narrow_end.cuh"

namespace strobe::cuda {

/// Rows of a 16-bit operand in shared memory, as Hopper's units copy and multiply it: panels of 64
/// columns, one after the other, in which a row is a line of 128 bytes. Within a line the 16-byte
/// chunks are swizzled by the line's number, so that eight lines have a given chunk in eight
/// different places. The last panel is whole, with zeros behind the last column, or, if `narrow`,
/// one of 16 columns with lines of 32 bytes: an operand that is read along columns alone, or by
/// threads, may be so.
template <int rows, int columns, bool narrow = false>
struct SwizzledTile {
  static constexpr int kRows = rows;
  static constexpr int kPanelColumns = 64;
  static constexpr int kPanels = ceil_div(columns, kPanelColumns);
  static constexpr int kLineBytes = 128;
  static constexpr int kPanelBytes = rows * kLineBytes;
  static constexpr bool kEndsNarrow = narrow;
  static constexpr int kChunks =  ///< of a row
      narrow ? (kPanels - 1) * 8 + kNarrowColumns / 8 : kPanels * 8;
  static constexpr int kCopiedBytes = rows * kChunks * 16;
  static constexpr int kAlignment = 1024;  ///< of the first byte: eight lines
  static constexpr int kBytes = round_up(kCopiedBytes, kAlignment);
  static_assert(rows % 8 == 0);

  /// Where chunk `chunk`, 8 columns, of a row lies from the tile's beginning.
  STROBE_DEVICE static constexpr Word chunk_offset(Word row, Word chunk) {
    return chunk_offset(row, chunk / 8, chunk);
  }
  /// The same where the panel is known to the compiler.
  STROBE_DEVICE static constexpr Word chunk_offset(Word row, Word panel, Word chunk) {
    if (is_narrow(panel)) {
      return panel * kPanelBytes + row * kNarrowLine + (chunk ^ row / 4) % 2 * 16;
    }
    return panel * kPanelBytes + row * kLineBytes + (chunk ^ row) % 8 * 16;
  }
  /// From a chunk of a row to the same chunk eight rows on, which is swizzled alike.
  STROBE_DEVICE static constexpr Word eight_rows(Word chunk) {
    return 8 * (is_narrow(chunk / 8) ? kNarrowLine : kLineBytes);
  }

  /// The tile as an operand whose inner axis are the columns: 16 of them from 16 · step on.
  STROBE_DEVICE static unsigned long long along_columns(Word tile, int step) {
    if (is_narrow(step / 4)) return describe(tile + step / 4 * kPanelBytes, 0, kNarrowLine);
    return describe(tile, 0) + static_cast<Word>(step / 4 * kPanelBytes + step % 4 * 32) / 16;
  }

  /// The tile as a right operand whose inner axis are the rows: 16 of them from 16 · step on.
  STROBE_DEVICE static unsigned long long along_rows(Word tile, int step) {
    static_assert(!narrow, "all panels of such an operand have lines of the same length");
    return describe(tile, kPanelBytes) + static_cast<Word>(step * 16 * kLineBytes) / 16;
  }

 private:
  static constexpr int kNarrowLine = kNarrowColumns * 2;

  STROBE_DEVICE static constexpr bool is_narrow(int panel) {
    return narrow && panel == kPanels - 1;
  }

  /// What the unit reads, in units of 16 bytes: where the operand begins, how far it is to the next
  /// 64 columns, which matters along rows alone, and to the next eight lines.
  STROBE_DEVICE static unsigned long long describe(Word tile, int panel_bytes,
                                                   int line_bytes = kLineBytes) {
    const unsigned long long swizzle = line_bytes == kLineBytes ? 1 : 3;
    const auto group_bytes = static_cast<unsigned long long>(8 * line_bytes);
    return swizzle << 62 | group_bytes / 16 << 32 |
           static_cast<unsigned long long>(panel_bytes / 16) << 16 | (tile & 0x3FFFFU) / 16;
  }
};

}  // namespace strobe::cuda
