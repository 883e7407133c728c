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
