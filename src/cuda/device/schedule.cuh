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
    WorkItem item = item_of(static_cast<Word>(last_blocks_first ? blocks - 1 - turn : turn), head);
    item.value_part = static_cast<int>(part);
    return item;
  }

  /// That of a sequence of so many blocks by itself, whose heads are a section at most.
  STROBE_DEVICE Schedule of_one_sequence(int its_blocks) const {
    return {its_blocks, heads, 1, smaller(heads_per_section, heads)};
  }

  /// A block of one of the heads of all sequences.
  STROBE_DEVICE WorkItem item_of(Word block, Word head) const {
    return {static_cast<int>(block), static_cast<int>(head % static_cast<Word>(heads)),
            static_cast<int>(head / static_cast<Word>(heads)), 0};
  }
};

// Orders of the tiles of heads, of which later ones take longer, that are known from the start.

/// Of a tile, its number in its head and the head's number.
struct TilePlace {
  Word tile;
  Word head;
};

/// Each thread block takes a long one and a short one of a head in turns, which are as long
/// together as any other two. Those that are not `paired`, of whole heads, are taken one by one,
/// the longest first, there and back: whoever had a long one gets a short one next, or none.
class PairedTiles {
 public:
  STROBE_DEVICE PairedTiles(Word tiles, Word tiles_of_head, Word paired, Word takers, Word taker)
      : tiles_of_head_(tiles_of_head),
        paired_(paired),
        heads_left_((tiles - paired) / tiles_of_head),
        takers_(takers),
        taker_(taker),
        place_((taker + takers - paired / 2 % takers) % takers) {}

  /// As many as are taken in whole rounds, in which every block has a pair.
  STROBE_DEVICE static Word in_whole_rounds(Word tiles, Word tiles_of_head, Word takers) {
    const Word heads = tiles / (2 * takers) * (2 * takers) / tiles_of_head;
    const bool lies_across = heads * tiles_of_head % 2 != 0;
    return (lies_across ? heads - 1 : heads) * tiles_of_head;
  }

  /// The number of a block's first tile. There is none if it is not below that of all tiles.
  STROBE_DEVICE Word first() const { return 2 * taker_ < paired_ ? 2 * taker_ : first_left(); }
  /// And of the first that is not of a pair.
  STROBE_DEVICE Word first_left() const { return left_over(0); }
  STROBE_DEVICE Word after(Word index) const {
    if (index >= paired_) return left_over((index - paired_) / takers_ + 1);
    const Word next = index % 2 == 0 ? index + 1 : index - 1 + 2 * takers_;
    return next < paired_ ? next : first_left();
  }

  STROBE_DEVICE TilePlace place_of(Word index) const {
    if (index >= paired_) {
      const Word left = index - paired_;
      return {tiles_of_head_ - 1 - left / heads_left_,
              paired_ / tiles_of_head_ + left % heads_left_};
    }
    const Word head = index / tiles_of_head_;
    // With an odd number, the tile in the middle comes last in one head and first in the next.
    const Word turn = (index + tiles_of_head_ - head * tiles_of_head_ % 2) % tiles_of_head_;
    return {turn % 2 == 0 ? tiles_of_head_ - 1 - turn / 2 : turn / 2, head};
  }

 private:
  /// The tile that a block takes in a turn of those that are left.
  STROBE_DEVICE Word left_over(Word turn) const {
    return paired_ + turn * takers_ + (turn % 2 == 0 ? place_ : takers_ - 1 - place_);
  }

  Word tiles_of_head_;
  Word paired_;
  Word heads_left_;
  Word takers_;
  Word taker_;
  Word place_;  ///< among those who take what is left: those first who had one pair less
};

/// One head after the other, its longest tile first, by as many thread blocks as it has tiles: they
/// read its keys at about the same time. Every round goes the other way than the one before, so
/// that whoever had a long one gets a short one next.
class TilesThereAndBack {
 public:
  /// As PairedTiles are made.
  STROBE_DEVICE TilesThereAndBack(Word /*tiles*/, Word tiles_of_head, Word /*paired*/, Word takers,
                                  Word taker)
      : tiles_of_head_(tiles_of_head), takers_(takers), taker_(taker) {}

  STROBE_DEVICE Word first() const { return taker_; }
  STROBE_DEVICE Word after(Word index) const {
    const Word round = index / takers_ + 1;
    return round * takers_ + (round % 2 == 0 ? taker_ : takers_ - 1 - taker_);
  }
  STROBE_DEVICE TilePlace place_of(Word index) const {
    return {tiles_of_head_ - 1 - index % tiles_of_head_, index / tiles_of_head_};
  }

 private:
  Word tiles_of_head_;
  Word takers_;
  Word taker_;
};

}  // namespace strobe::cuda
