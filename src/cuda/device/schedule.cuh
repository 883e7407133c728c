#pragma once

#include "device/basics.cuh"

namespace strobe::cuda {

/// What a thread block works on.
struct WorkItem {
  int block;  ///< of queries or of keys
  int head;
  int sequence;
  int value_part;
};

/// In which order thread blocks take work. Heads are gone through in sections whose keys and values
/// fit the second level cache. Within a section the heads take turns and, where later queries see
/// more keys, the last queries come first: the longest work starts first and the shortest fills
/// the gaps at the end.
struct Schedule {
  int blocks;
  int heads;
  int sequences;
  int heads_per_section;

  /// Items of one head after the other, of which 2i and 2i + 1 are as long together as any other
  /// two, where every block takes one step longer than the one before.
  STROBE_DEVICE WorkItem item_of_pairs(Word index) const {
    const Word count = static_cast<Word>(blocks);
    const Word head = index / count;
    // With an odd number, the block in the middle comes last in one head and first in the next.
    const Word turn = (index + count - head * count % 2) % count;
    return {static_cast<int>(turn % 2 == 0 ? count - 1 - turn / 2 : turn / 2),
            static_cast<int>(head % static_cast<Word>(heads)),
            static_cast<int>(head / static_cast<Word>(heads)), 0};
  }

  template <bool last_blocks_first, int value_parts>
  STROBE_DEVICE WorkItem item(Word index) const {
    const Word part = index % value_parts;
    index /= value_parts;
    const Word section_heads = static_cast<Word>(heads_per_section);
    const Word section_items = section_heads * static_cast<Word>(blocks);
    const Word first_head = index / section_items * section_heads;
    const Word within = index % section_items;
    const Word all_heads = static_cast<Word>(heads) * static_cast<Word>(sequences);
    const Word in_section = smaller(section_heads, all_heads - first_head);
    const int turn = static_cast<int>(within / in_section);
    const Word head = first_head + within % in_section;
    return {last_blocks_first ? blocks - 1 - turn : turn,
            static_cast<int>(head % static_cast<Word>(heads)),
            static_cast<int>(head / static_cast<Word>(heads)), static_cast<int>(part)};
  }
};

}  // namespace strobe::cuda
