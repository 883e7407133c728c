#include "verify/grid.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "verify/random.h"

namespace strobe::lab {
namespace {

/// Cards dealt in random order, each once before any comes again: after as many deals as there
/// are cards every value has been seen, whatever the other axes did.
template <class Card>
class Deck {
 public:
  Deck(std::vector<Card> cards, std::uint32_t stream)
      : cards_(std::move(cards)), random_(0, stream) {}

  Card deal() {
    return deal([](const Card&) { return true; });
  }

  /// The next card that fits; those passed over stay on top. If none is left that fits, one that
  /// has been dealt before comes again, and if none ever fits, the first of the deck.
  template <class Fits>
  Card deal(const Fits& fits) {
    if (pile_.empty()) shuffle();
    auto chosen = std::find_if(pile_.begin(), pile_.end(), fits);
    if (chosen == pile_.end()) {
      const auto any = std::find_if(cards_.begin(), cards_.end(), fits);
      return any == cards_.end() ? cards_.front() : *any;
    }
    Card card = *chosen;
    pile_.erase(chosen);
    return card;
  }

 private:
  void shuffle() {
    pile_ = cards_;
    for (std::size_t i = pile_.size(); i > 1; --i) {
      std::swap(pile_[i - 1], pile_[random_.word(draws_++) % i]);
    }
  }

  std::vector<Card> cards_, pile_;
  RandomStream random_;
  std::uint64_t draws_ = 0;
};

struct Pair {
  std::int64_t first, second;
};

/// Changes a case along one axis.
using Tweak = std::function<void(Case&)>;

// Sorted by size where a deck falls back on its first card.
const std::vector<Pair> kDims{
    {8, 8},     {16, 16},   {21, 21},   {32, 32},   {40, 40},   {59, 59},   {64, 64},   {72, 72},
    {80, 80},   {96, 96},   {111, 111}, {128, 128}, {129, 129}, {136, 136}, {160, 160}, {192, 192},
    {203, 203}, {224, 224}, {256, 256}, {192, 128}, {64, 256},  {128, 64}};

/// Of 8 heads that lie beside each other, these begin within 16 bytes of 16-bit elements, although
/// rows begin at multiples of 16: in steps of one, two and four elements, keys and values alike or
/// not.
const std::vector<Pair> kDimsWithinChunks{{33, 33},   {66, 66},   {100, 52},  {65, 130},
                                          {129, 129}, {132, 132}, {201, 201}, {249, 36}};

/// For keys, values or both no kernel has registers or shared memory in the usual way.
const std::vector<Pair> kDimsAbove256{{257, 257}, {128, 264}, {264, 40},  {320, 296},
                                      {21, 511},  {384, 384}, {500, 129}, {512, 512}};

const std::vector<Pair> kLengths{{1, 1},     {1, 3},     {2, 1},       {1, 147},    {239, 1},
                                 {3, 799},   {799, 3},   {113, 203},   {113, 211},  {128, 217},
                                 {108, 256}, {307, 256}, {640, 128},   {127, 512},  {127, 513},
                                 {256, 512}, {512, 256}, {1023, 1024}, {1024, 1023}};
const std::vector<Pair> kLongLengths{{2048, 2048}, {1, 131072}};

const std::vector<DType> kTypes{DType::fp32, DType::fp16, DType::bf16};
const std::vector<Pass> kPasses{Pass::forward, Pass::backward};

/// Query heads and key heads: every ratio, and multi-query.
const std::vector<Pair> kHeads{{1, 1}, {2, 1}, {3, 1}, {4, 2},  {4, 1},  {5, 1}, {6, 1},
                               {7, 1}, {8, 2}, {8, 1}, {16, 1}, {32, 1}, {2, 2}, {6, 2}};

const std::vector<Storage> kStorages{Storage::contiguous, Storage::transposed, Storage::sliced,
                                     Storage::expanded, Storage::noncontiguous_dout};

/// Window limits in terms of the number of keys.
std::int64_t limit(int which, std::int64_t keys) {
  const std::int64_t limits[] = {-1, 0, 1, 7, keys - 1, keys, keys + 9};
  return std::max<std::int64_t>(limits[which], -1);
}

const std::vector<Tweak>& masks() {
  static const std::vector<Tweak> list = [] {
    std::vector<Tweak> all;
    for (int copies = 0; copies < 6; ++copies) {
      all.push_back([](Case&) {});
      all.push_back([](Case& c) { c.problem.causal = true; });
    }
    for (int i = 0; i < 7; ++i) {
      all.push_back([i](Case& c) { c.problem.window.left = limit(i, c.problem.keys()); });
      all.push_back([i](Case& c) { c.problem.window.right = limit(i, c.problem.keys()); });
      all.push_back([i](Case& c) {
        c.problem.window = {limit(i, c.problem.keys()), limit((3 * i + 2) % 7, c.problem.keys())};
      });
    }
    return all;
  }();
  return list;
}

const std::vector<Tweak>& features() {
  static const std::vector<Tweak> list{
      [](Case&) {},
      [](Case& c) { c.inputs.scale = 3; },
      [](Case& c) { c.inputs.scale = 5; },
      [](Case& c) { c.problem.softcap = 15, c.inputs.scale = 5; },
      [](Case& c) { c.problem.softcap = 50, c.inputs.scale = 5; },
      [](Case& c) { c.problem.alibi = true; },
      [](Case& c) { c.problem.sinks = true; },
      [](Case& c) { c.problem.dropout = 0.17, c.problem.dropout_seed = c.inputs.seed; },
      [](Case& c) { c.problem.scale = 1.0 / static_cast<double>(c.problem.dim); },
      [](Case& c) { c.problem.scale = -0.1; },
      [](Case& c) { c.problem.bias = Bias{}; },
      [](Case& c) { c.problem.bias = Bias{.per_batch = false}; },
      [](Case& c) { c.problem.bias = Bias{.per_head = false, .per_query = false}; },
      [](Case& c) { c.problem.bias = Bias{.per_batch = false, .per_head = false}; },
      [](Case& c) {
        c.problem.bias = Bias{.per_batch = false, .per_head = false, .per_query = false};
      },
      [](Case& c) { c.problem.bias = Bias{}, c.inputs.masked_bias = true; },
      [](Case& c) { c.problem.alibi = c.problem.sinks = true; },
      [](Case& c) { c.problem.bias = Bias{}, c.problem.softcap = 15, c.problem.sinks = true; },
      [](Case& c) { c.problem.dropout = 0.17, c.problem.alibi = true, c.problem.softcap = 50; }};
  return list;
}

struct LengthLists {
  std::vector<std::int64_t> q, k;
};

const std::vector<LengthLists>& variable_lengths() {
  static const std::vector<LengthLists> list{{{37, 100, 1, 64}, {37, 100, 1, 64}},
                                             {{17, 128, 90}, {60, 129, 33}},
                                             {{0, 50, 61}, {0, 70, 61}},
                                             {{50, 0, 61}, {70, 0, 61}},
                                             {{50, 61, 0}, {70, 61, 0}},
                                             {{0, 0}, {0, 0}},
                                             {{0, 31, 0}, {40, 62, 5}},
                                             {{40, 62, 5}, {0, 31, 0}},
                                             {{1, 1, 1, 1, 1}, {129, 0, 64, 300, 1}},
                                             {{200, 3}, {200, 3}},
                                             {{13, 25, 38}, {150, 7, 1}},
                                             {{128}, {256}}};
  return list;
}

/// Multiply-adds of one forward pass, what the oracle's time goes by.
std::int64_t work(const Case& c) {
  const Problem& p = c.problem;
  return p.batch * p.heads * p.seqlen_q * p.keys() * (p.dim + p.value_dim());
}

/// Deals cases from one deck for each axis.
class Dealer {
 public:
  /// No case has more multiply-adds in its forward pass than `limit`, if its axes allow it.
  Dealer(std::int64_t limit, std::uint64_t first_seed) : limit_(limit), seed_(first_seed) {}

  Case dense() { return dense(lengths_.deal(), std::nullopt, types_.deal()); }

  /// Everything that is not given is dealt.
  Case dense(Pair lengths, std::optional<Pair> dims, DType dtype) {
    Case c = blank(dtype);
    c.problem.seqlen_q = lengths.first;
    if (lengths.second != lengths.first) c.problem.seqlen_k = lengths.second;
    set_dims(c, dims ? *dims : dims_.deal([&](Pair d) { return fits(with_dims(c, d)); }));
    set_heads(c);
    set_batch(c);
    finish(c);
    return c;
  }

  /// As dense, of heads that lie beside each other, each with keys of its own.
  Case heads_in_rows(Pair lengths, Pair dims, DType dtype) {
    Case c = dense(lengths, dims, dtype);
    c.problem.heads = 8;
    c.problem.heads_k.reset();
    c.inputs.storage = Storage::contiguous;
    return c;
  }

  Case varlen() {
    Case c = blank(types_.deal());
    const LengthLists lists = variable_lengths_.deal();
    Problem& p = c.problem;
    p.lengths_q = lists.q;
    p.lengths_k = lists.k;
    p.batch = static_cast<std::int64_t>(lists.q.size());
    const std::int64_t spare = spares_.deal();
    p.seqlen_q = *std::max_element(lists.q.begin(), lists.q.end()) + spare;
    p.seqlen_k = *std::max_element(lists.k.begin(), lists.k.end()) + spare;
    set_dims(c, dims_.deal([&](Pair d) { return fits(with_dims(c, d)); }));
    set_heads(c);
    if (lists.q == lists.k) pack(c, layouts_.deal());
    finish(c);
    if (c.inputs.storage == Storage::expanded) c.inputs.storage = Storage::sliced;
    return c;
  }

  /// Packed q, k and v, or k and v.
  Case packed(Layout layout) {
    Case c = dense({97, 97}, std::nullopt, types_.deal());
    pack(c, layout);
    return c;
  }

 private:
  Case blank(DType dtype) {
    Case c;
    c.problem.dtype = dtype;
    c.problem.pass = passes_.deal();
    c.inputs.seed = seed_++;
    return c;
  }

  static Case with_dims(Case c, Pair dims) {
    set_dims(c, dims);
    return c;
  }

  static void set_dims(Case& c, Pair dims) {
    c.problem.dim = dims.first;
    if (dims.second != dims.first) c.problem.dim_v = dims.second;
  }

  void set_heads(Case& c) {
    const Pair heads = heads_.deal([&](Pair h) {
      Case larger = c;
      larger.problem.heads = h.first;
      return fits(larger);
    });
    c.problem.heads = heads.first;
    if (heads.second != heads.first) c.problem.heads_k = heads.second;
  }

  void set_batch(Case& c) {
    c.problem.batch = batches_.deal([&](std::int64_t batch) {
      Case larger = c;
      larger.problem.batch = batch;
      return fits(larger);
    });
  }

  void finish(Case& c) {
    masks_.deal()(c);
    features_.deal()(c);
    c.inputs.storage = storages_.deal();
  }

  /// Makes equal what the layout needs to be equal.
  static void pack(Case& c, Layout layout) {
    c.problem.layout = layout;
    if (layout == Layout::separate) return;
    c.problem.dim_v.reset();
    if (layout == Layout::qkvpacked) {
      c.problem.heads_k.reset();
      c.problem.seqlen_k.reset();
    }
  }

  bool fits(const Case& c) const { return work(c) <= limit_; }

  std::int64_t limit_;
  std::uint64_t seed_;
  Deck<Pair> dims_{kDims, 1}, lengths_{kLengths, 2}, heads_{kHeads, 3};
  Deck<DType> types_{kTypes, 4};
  Deck<Pass> passes_{kPasses, 5};
  Deck<std::int64_t> batches_{{1, 2, 3}, 6};
  Deck<Tweak> masks_{masks(), 7}, features_{features(), 8};
  Deck<Storage> storages_{kStorages, 9};
  Deck<LengthLists> variable_lengths_{variable_lengths(), 10};
  Deck<Layout> layouts_{{Layout::separate, Layout::kvpacked, Layout::qkvpacked}, 11};
  /// How much longer than any sequence the declared longest is.
  Deck<std::int64_t> spares_{{0, 23}, 12};
};

}  // namespace

std::vector<Case> quick_grid() {
  std::vector<Case> cases = known_trouble();
  Dealer dealer(std::int64_t{1} << 26, 1000);
  for (int i = 0; i < 95; ++i) cases.push_back(dealer.dense());
  for (int i = 0; i < 36; ++i) cases.push_back(dealer.varlen());
  for (int i = 0; i < 6; ++i) {
    cases.push_back(dealer.packed(Layout::qkvpacked));
    cases.push_back(dealer.packed(Layout::kvpacked));
  }
  return cases;
}

std::vector<Case> full_grid() {
  std::vector<Case> cases = quick_grid();
  Dealer dealer(std::int64_t{1} << 30, 100000);
  std::vector<Pair> lengths = kLengths;
  lengths.insert(lengths.end(), kLongLengths.begin(), kLongLengths.end());
  for (const Pair pair : lengths) {
    for (const Pair dims : kDims) {
      for (const DType dtype : kTypes) cases.push_back(dealer.dense(pair, dims, dtype));
    }
  }
  for (std::int64_t n = 1; n <= 200; ++n) {
    for (const DType dtype : kTypes) {
      cases.push_back(dealer.dense({n, 201 - n}, std::nullopt, dtype));
      cases.push_back(dealer.dense({n, 97 + n}, std::nullopt, dtype));
    }
  }
  for (int i = 0; i < 300; ++i) cases.push_back(dealer.varlen());
  for (int i = 0; i < 100; ++i) {
    cases.push_back(dealer.packed(Layout::qkvpacked));
    cases.push_back(dealer.packed(Layout::kvpacked));
  }
  const auto add_plain_and_causal = [&cases](auto deal) {
    cases.push_back(deal());
    Case causal = deal();
    causal.problem.causal = true;
    causal.problem.window = {};
    cases.push_back(causal);
  };
  const std::vector<Pair> some_lengths{{113, 203}, {307, 256}};
  for (const Pair pair : some_lengths) {
    for (const Pair dims : kDimsWithinChunks) {
      for (const DType dtype : {DType::fp16, DType::bf16})
        add_plain_and_causal([&] { return dealer.heads_in_rows(pair, dims, dtype); });
    }
  }
  for (const Pair pair : some_lengths) {
    for (const Pair dims : kDimsAbove256) {
      for (const DType dtype : kTypes)
        add_plain_and_causal([&] { return dealer.dense(pair, dims, dtype); });
    }
  }
  return cases;
}

}  // namespace strobe::lab
