#pragma once
// How the kernel is compiled for a problem: what it computes and how it is cut.

#include <algorithm>
#include <array>
#include <limits>

#include "device/reference.cuh"
#include "device/schedule.cuh"
#include "kernels/configuration.h"
#include "kernels/hopper_forward/output_way.cuh"
#include "kernels/hopper_forward/tile_order.cuh"
#include "strobe/implementation.h"

namespace strobe::cuda {

/// What the kernel computes.
struct HopperForwardFeatures {
  Arithmetic arithmetic = Arithmetic::bf16;  ///< bf16 or fp16
  int dim = 128;                             ///< of queries and keys, up to 256
  int value_dim = 128;                       ///< likewise
  bool shifted = false;  ///< heads may begin within chunks of 16 bytes, see HeadsWithOthers
  int head_unit = kChunkElements;  ///< then their boxes begin at multiples of so many elements
  bool window_left = false;
  bool window_right = false;  ///< also if causal
  bool variable_length = false;
  bool positive_scale = true;
  bool softcap = false;
  bool bias = false;
  bool bias_per_query = false;  ///< else one row serves all
  bool alibi = false;
  bool dropout = false;
  bool sinks = false;
  Reference reference = Reference::running;
};

/// Columns of tiles of keys, and of values.
constexpr int key_columns(const HopperForwardFeatures& features) {
  return tile_columns(features.dim, features.shifted, features.head_unit);
}
constexpr int value_columns(const HopperForwardFeatures& features) {
  return tile_columns(features.value_dim, features.shifted, features.head_unit);
}
constexpr int most_columns(const HopperForwardFeatures& features) {
  return std::max(key_columns(features), value_columns(features));
}

/// Whether more is done to a score than the softmax can do, which takes a scale into its powers.
constexpr bool makes_logits(const HopperForwardFeatures& features) {
  return features.softcap || features.bias || features.alibi || !features.positive_scale;
}

/// How it is cut.
struct HopperForwardShape {
  int block_keys = 128;
  int warpgroups = 2;   ///< that compute, 64 queries each
  int stages = 2;       ///< of keys, and of values, in shared memory
  int more_keys = 0;    ///< slots of keys that there are besides
  int query_slots = 2;  ///< with two, a tile's first scores overlap with the last output before
  TileOrder order = TileOrder::one_by_one;
  OutputWay output_way = OutputWay::by_queries;

  constexpr int key_slots() const { return stages + more_keys; }
  bool operator==(const HopperForwardShape&) const = default;
};

/// Whether rows of the output are whole chunks that lie where the kernel's tiles have them.
constexpr bool stores_whole_chunks(const HopperForwardFeatures& features) {
  return !features.shifted && features.value_dim % kChunkElements == 0;
}

struct HopperForwardConfig {
  HopperForwardFeatures features{};
  HopperForwardShape shape{};

  int block_queries() const { return shape.warpgroups * 64; }
  int threads() const { return (shape.warpgroups + 1) * 128; }

  /// A block begins with as many registers for every thread as it can have. Those of the warpgroup
  /// that loads are then handed to the others: asking for more than there are waits for ever.
  int registers_at_start() const { return registers_of_a_thread(threads(), 1); }
  int producer_registers() const { return shape.warpgroups == 2 ? 40 : 32; }
  int consumer_registers() const {
    const int left = threads() * registers_at_start() - 128 * producer_registers();
    return left / (128 * shape.warpgroups) / 8 * 8;
  }
};

/// What layout.cuh plans: queries, or the output that takes their place, keys, values, what is
/// added to the scores, and at the end the barriers.
constexpr int shared_bytes(const HopperForwardConfig& config) {
  constexpr int kControl = 768;
  const auto& [features, shape] = config;
  const int query_bytes = narrow_tile_bytes(64, key_columns(features));
  const int output_bytes = narrow_tile_bytes(64, value_columns(features));
  const int key_bytes = narrow_tile_bytes(shape.block_keys, key_columns(features));
  const int value_bytes = shape.block_keys * tile_row_bytes(value_columns(features));
  const int bias_rows = !features.bias ? 0 : features.bias_per_query ? shape.warpgroups * 64 : 8;
  const int output_slots = shape.output_way == OutputWay::by_slot ? 1 : 0;
  return shape.warpgroups * (shape.query_slots * std::max(query_bytes, output_bytes) +
                             output_slots * output_bytes) +
         shape.key_slots() * (key_bytes + bias_rows * tile_row_bytes(shape.block_keys)) +
         shape.stages * value_bytes + kControl;
}

/// Whether a multiprocessor has as much.
constexpr bool fits(const HopperForwardConfig& config) {
  return shared_bytes(config) <= shared_memory_of(90).per_block;
}

namespace hopper_forward {

/// What there are registers for besides the products and the softmax.
enum class Room { nothing, causal, fixed_reference, masks, logits, everything };

constexpr Room room_needed(const HopperForwardFeatures& features) {
  if (features.bias) return Room::everything;
  if (makes_logits(features) || features.dropout) return Room::logits;
  if (features.window_left || features.variable_length) return Room::masks;
  if (features.reference == Reference::fixed) return Room::fixed_reference;
  return features.window_right ? Room::causal : Room::nothing;
}

/// How much there is to do.
struct Work {
  long long queries = 0;  ///< of a sequence
  long long keys = 0;     ///< that a query may see, all but for a window
  long long heads = 0;    ///< of all sequences
  int multiprocessors = 132;
};

/// What a way to cut is worth it for.
enum class Only { anything, masks, fixed_reference };

constexpr long long kAnyNumber = std::numeric_limits<long long>::max();

/// A way to cut that serves dims up to `dim` and numbers of keys in [from_keys, to_keys).
struct Candidate {
  int dim;
  HopperForwardShape shape;
  Room room = Room::everything;
  long long from_keys = 0;
  long long to_keys = kAnyNumber;
  Only only = Only::anything;

  constexpr bool serves(const HopperForwardFeatures& features, long long keys) const {
    return most_columns(features) <= dim && room_needed(features) <= room && keys >= from_keys &&
           keys < to_keys && is_for(features) && fits({features, shape});
  }

 private:
  constexpr bool is_for(const HopperForwardFeatures& features) const {
    if (only == Only::masks) return features.window_left || features.window_right;
    return only == Only::anything || features.reference == Reference::fixed;
  }
};

// Scores, weights and output take block_keys · 3/4 + dim / 2 registers of a thread; two warpgroups
// have 232, three have 160, four have 112. In order of preference where there is plenty to do: more
// warpgroups read keys and values from shared memory less often.
inline constexpr std::array kCandidates = {
    Candidate{64, {.block_keys = 64, .warpgroups = 4, .stages = 4}, Room::causal, 0, 2048},
    Candidate{64,
              {.block_keys = 64, .warpgroups = 4, .stages = 4},
              Room::fixed_reference,
              0,
              kAnyNumber,
              Only::fixed_reference},
    Candidate{64,
              {.block_keys = 128, .warpgroups = 2, .stages = 3},
              Room::everything,
              0,
              2048,
              Only::masks},
    Candidate{64, {.block_keys = 128, .warpgroups = 3}, Room::fixed_reference},
    Candidate{64, {.block_keys = 112, .warpgroups = 3}, Room::masks},
    Candidate{96, {.block_keys = 112, .warpgroups = 3}, Room::causal},
    Candidate{96, {.block_keys = 96, .warpgroups = 3}, Room::masks},
    Candidate{128, {.block_keys = 160, .warpgroups = 2, .query_slots = 1}, Room::masks, 4096},
    Candidate{128, {.block_keys = 128, .warpgroups = 2}, Room::logits},
    Candidate{128, {.block_keys = 128, .warpgroups = 2, .query_slots = 1}},
    Candidate{144, {.block_keys = 80, .warpgroups = 3, .query_slots = 1}, Room::nothing},
    Candidate{192, {.block_keys = 112, .warpgroups = 2, .query_slots = 1}, Room::masks},
    Candidate{192, {.block_keys = 96, .warpgroups = 2, .query_slots = 1}},
    Candidate{256, {.block_keys = 64, .warpgroups = 2, .query_slots = 1}},
};

/// Queries that the busiest multiprocessor goes through, those included that only fill its tiles.
constexpr long long busiest_share(const HopperForwardShape& shape, const Work& work) {
  const long long rows = shape.warpgroups * 64LL;
  const long long tiles = (work.queries + rows - 1) / rows * work.heads;
  return (tiles + work.multiprocessors - 1) / work.multiprocessors * rows;
}

/// How tiles are best handed out. Where later queries make them longer, in an order that gives
/// everybody as much: then nobody has to ask for the next, and a head's tiles stay together. Not if
/// many multiprocessors would have nothing to do at the end.
constexpr TileOrder suited_order(const HopperForwardFeatures& features,
                                 const HopperForwardShape& shape, const Work& work) {
  if (features.variable_length) return TileOrder::on_demand;
  if (!last_queries_first(features)) return TileOrder::one_by_one;
  const long long rows = shape.warpgroups * 64LL;
  const long long tiles_of_head = (work.queries + rows - 1) / rows;
  const long long pairs = (tiles_of_head * work.heads + 1) / 2;
  const long long rounds = (pairs + work.multiprocessors - 1) / work.multiprocessors;
  if (rounds * work.multiprocessors * 24 > pairs * 25) return TileOrder::on_demand;
  // Measured: large heads of few tiles gain by it, others do not.
  const bool few = tiles_of_head <= 4 && 2 * work.multiprocessors % tiles_of_head == 0;
  return few && most_columns(features) > 192 ? TileOrder::there_and_back : TileOrder::in_pairs;
}

/// How many tiles are handed out in pairs, if they are: all of them, or whole rounds if what is
/// left then ends earlier one by one. A tile takes as many steps as blocks of its own length that
/// it sees, and about another one.
inline int tiles_in_pairs(int tiles, int tiles_of_head, int takers) {
  const auto all = static_cast<Word>(tiles);
  const auto of_head = static_cast<Word>(tiles_of_head);
  const auto count = static_cast<Word>(takers);
  const Word steps_of_pair = of_head + 3;
  const Word paired = PairedTiles::in_whole_rounds(all, of_head, count);
  Word longest = 0;
  for (Word taker = 0; taker < count; ++taker) {
    const PairedTiles order(all, of_head, paired, count, taker);
    Word steps = (paired / 2 + count - 1 - taker) / count * steps_of_pair;
    for (Word index = order.first_left(); index < all; index = order.after(index))
      steps += order.place_of(index).tile + 2;
    longest = std::max(longest, steps);
  }
  const Word rounds = ((all + 1) / 2 + count - 1) / count;
  return static_cast<int>(longest < rounds * steps_of_pair ? paired : all);
}

/// How the output best leaves: so that the next queries are on their way while it does.
constexpr OutputWay suited_output_way(const HopperForwardFeatures& features,
                                      HopperForwardShape shape) {
  shape.output_way = OutputWay::by_slot;
  if (fits({features, shape})) return OutputWay::by_slot;
  // From registers was measured to be slower with three warpgroups.
  const bool from_registers =
      shape.query_slots == 1 && shape.warpgroups == 2 && stores_whole_chunks(features);
  return from_registers ? OutputWay::from_registers : OutputWay::by_queries;
}

/// Slots that keys have besides, if there is room: measured to be worth it where there are few
/// slots of anything, and tiles are short and of different lengths.
constexpr int suited_more_keys(const HopperForwardFeatures& features, HopperForwardShape shape,
                               const Work& work) {
  constexpr long long kFewKeys = 1024;
  const bool suits = last_queries_first(features) && work.keys <= kFewKeys && shape.stages == 2 &&
                     shape.query_slots == 1;
  shape.more_keys = 1;
  return suits && fits({features, shape}) ? 1 : 0;
}

/// The shape with what follows from the work.
constexpr HopperForwardShape suited(HopperForwardShape shape, const HopperForwardFeatures& features,
                                    const Work& work) {
  shape.order = suited_order(features, shape, work);
  shape.output_way = suited_output_way(features, shape);
  shape.more_keys = suited_more_keys(features, shape, work);
  return shape;
}

}  // namespace hopper_forward

/// The first candidate that keeps all multiprocessors about as busy as any would.
inline HopperForwardConfig choose_hopper_forward(const HopperForwardFeatures& features,
                                                 const hopper_forward::Work& work) {
  using namespace hopper_forward;
  long long least = std::numeric_limits<long long>::max();
  for (const auto& candidate : kCandidates) {
    if (candidate.serves(features, work.keys))
      least = std::min(least, busiest_share(candidate.shape, work));
  }
  HopperForwardShape shape = kCandidates.back().shape;
  for (const auto& candidate : kCandidates) {
    if (candidate.serves(features, work.keys) &&
        busiest_share(candidate.shape, work) <= least + least / 10) {
      shape = candidate.shape;
      break;
    }
  }
  return {features, suited(shape, features, work)};
}

/// How many keys a fixed reference is worth it for. It saves the search for a row's maximum, and a
/// block that it is too low for is multiplied again, which must take no more than a seventh of the
/// time whatever the inputs are: once for some tiles where their order is known, see Consumer, and
/// once a tile where it is not. At dims up to 64, masks leave too few registers to let hidden
/// blocks pass as well.
inline long long fewest_keys_for_fixed(const HopperForwardFeatures& features,
                                       const hopper_forward::Work& work) {
  constexpr long long kFew = 512;
  constexpr long long kSome = 1024;
  constexpr long long kMany = 2048;
  if (choose_hopper_forward(features, work).shape.order == TileOrder::on_demand) return kMany;
  if (most_columns(features) > 64) return kSome;
  return features.window_right ? kMany : kFew;
}

/// What weights are best relative to, if nothing else is asked for. Windows have few keys; where
/// logits are made or dims are large, the search costs little, and from 64 to 96 registers are too
/// few for both it and a large tile.
inline Reference choose_reference(HopperForwardFeatures features, const hopper_forward::Work& work,
                                  SoftmaxReference wanted = SoftmaxReference::automatic) {
  const bool possible = !features.window_left && !makes_logits(features) && !features.dropout;
  if (!possible || wanted == SoftmaxReference::running) return Reference::running;
  if (wanted == SoftmaxReference::fixed) return Reference::fixed;
  const int dim = most_columns(features);
  features.reference = Reference::fixed;
  const bool worth_it =
      (dim <= 64 || (dim > 96 && dim <= 128)) && work.keys >= fewest_keys_for_fixed(features, work);
  return worth_it ? Reference::fixed : Reference::running;
}

/// kReference
inline jit::Constant reference_constant(Reference reference) {
  return {"kReference", jit::Enumerator{"strobe::cuda::Reference",
                                        reference == Reference::fixed ? "fixed" : "running",
                                        "device/reference.cuh"}};
}

/// kOutputWay
inline jit::Constant output_way_constant(OutputWay way) {
  constexpr std::array kNames = {"by_queries", "by_slot", "from_registers"};  // in its order
  return {"kOutputWay",
          jit::Enumerator{"strobe::cuda::OutputWay", kNames[static_cast<std::size_t>(way)],
                          "kernels/hopper_forward/output_way.cuh"}};
}

/// kTileOrder
inline jit::Constant tile_order_constant(TileOrder order) {
  constexpr std::array kNames = {"one_by_one", "in_pairs", "there_and_back", "on_demand"};
  return {"kTileOrder",
          jit::Enumerator{"strobe::cuda::TileOrder", kNames[static_cast<std::size_t>(order)],
                          "kernels/hopper_forward/tile_order.cuh"}};
}

/// Its choices as the kernel knows them.
inline jit::KernelDescription description(const HopperForwardConfig& config) {
  const auto& [features, shape] = config;
  return {.name = "hopper_forward",
          .source = "kernels/hopper_forward/kernel.cu",
          .entries = {"hopper_forward"},
          .constants = {arithmetic_constant(features.arithmetic),
                        reference_constant(features.reference),
                        {"kDim", features.dim},
                        {"kValueDim", features.value_dim},
                        {"kKeyColumns", key_columns(features)},
                        {"kValueColumns", value_columns(features)},
                        {"kShifted", features.shifted},
                        {"kHeadUnit", features.head_unit},
                        {"kWindowLeft", features.window_left},
                        {"kWindowRight", features.window_right},
                        {"kVariableLength", features.variable_length},
                        {"kPositiveScale", features.positive_scale},
                        {"kSoftcap", features.softcap},
                        {"kBias", features.bias},
                        {"kBiasPerQuery", features.bias_per_query},
                        {"kAlibi", features.alibi},
                        {"kDropout", features.dropout},
                        {"kSinks", features.sinks},
                        {"kLastQueriesFirst", last_queries_first(features)},
                        tile_order_constant(shape.order),
                        output_way_constant(shape.output_way),
                        {"kBlockKeys", shape.block_keys},
                        {"kWarpgroups", shape.warpgroups},
                        {"kStages", shape.stages},
                        {"kKeySlots", shape.key_slots()},
                        {"kQuerySlots", shape.query_slots},
                        {"kProducerRegisters", config.producer_registers()},
                        {"kConsumerRegisters", config.consumer_registers()}},
          .threads = config.threads(),
          .dynamic_shared_bytes = shared_bytes(config),
          .max_registers = config.registers_at_start()};
}

inline constexpr int kHopperOrderThreads = 256;

/// What puts packed sequences in order; see order.cu.
inline jit::KernelDescription hopper_order() {
  return {.name = "hopper_order",
          .source = "kernels/hopper_forward/order.cu",
          .entries = {"hopper_order"},
          .threads = kHopperOrderThreads,
          .max_registers = registers_of_a_thread(kHopperOrderThreads, 1)};
}

}  // namespace strobe::cuda
