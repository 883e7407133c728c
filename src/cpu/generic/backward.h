#pragma once
// Flash attention, backward. Probabilities are recomputed from the LSE block by block. An item owns
// some keys, whose dk and dv it sums over all queries that see them, and adds up its own share of
// dq: five products, and every sum has one owner, so that the result does not depend on the number
// of threads.

#include "cpu/generic/backward_step.h"

namespace strobe::cpu::STROBE_ISA {
namespace {

/// dq of a block of queries: to where it belongs, or to the item's share, which `first` begins.
template <BackwardEngine Engine>
inline void store_dq(const BackwardItem& item, const HeadTask& task, std::int64_t query,
                     std::int64_t count, bool first, const BackwardBuffers<Engine>& buffers) {
  constexpr int kPanel = Engine::kPanel;
  float factor[kPanel];
  fill(factor, kPanel, item.dq == nullptr ? task.scale : 1.0F);
  float* share =
      item.dq == nullptr ? nullptr : item.dq + (&task - item.heads) * task.len_q * task.dim;
  for (std::int64_t i = 0; i < count; i += kPanel) {
    const float* from = buffers.dq + i * buffers.padded;
    const std::int64_t lanes = smaller(kPanel, count - i);
    const auto row = [&](std::int64_t lane) { return share + (query + i + lane) * task.dim; };
    if (item.dq == nullptr)
      store_turned(from, kPanel, lanes, task.dim, factor, task.dtype,
                   RowsFrom(task.dq, task.dtype, query + i));
    else if (first)
      store_turned<Fp32>(from, kPanel, lanes, task.dim, factor, row);
    else
      store_turned<SumFp32>(from, kPanel, lanes, task.dim, factor, row);
  }
}

/// What an item that has all keys is to store for queries that see none of them.
inline void clear_others(const BackwardItem& item, const HeadTask& task, Span seeing) {
  for (std::int64_t query = 0; query < task.len_q; ++query) {
    if (query >= seeing.begin && query < seeing.end) continue;
    if (item.statistics) task.correction[query] = task.delta[query] = 0.0F;
    __builtin_memset(RowsFrom(task.dq, task.dtype, query)(0), 0,
                     static_cast<std::size_t>(task.dim * bytes_of(task.dtype)));
  }
}

/// One head's queries against the chunk of keys that is loaded.
template <BackwardEngine Engine, class Exp>
inline bool backward_head(const BackwardItem& item, const HeadTask& task, std::int64_t key,
                          std::int64_t keys, const BackwardBuffers<Engine>& buffers,
                          Pipeline<Engine>& pipeline) {
  constexpr std::int64_t kQueries = kQueryPanels * Engine::kPanel;
  const Span whole = seeing_queries(task, item.key_begin, item.key_end - 1);
  const Span span = seeing_queries(task, key, key + keys - 1);
  if (item.dq == nullptr) clear_others(item, task, whole);
  // All chunks of the item cut the queries alike, and the first begins every row of the share.
  for (std::int64_t query = whole.begin; query < whole.end; query += kQueries) {
    const std::int64_t count = smaller(kQueries, whole.end - query);
    const bool first = key == item.key_begin;
    if (!first && (query + count <= span.begin || query >= span.end)) continue;
    const std::int64_t panels = (count + Engine::kPanel - 1) / Engine::kPanel;
    bool finite = true;
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t at = p * Engine::kPanel;
      finite = buffers.panel[p].template load<Exp>(task, query + at,
                                                   smaller(Engine::kPanel, count - at)) &&
               finite;
      if (!item.statistics) buffers.panel[p].load_statistics(task);
    }
    pipeline.rows = pipeline.after(pipeline.rows);
    const auto& rows = buffers.rows_of[pipeline.rows];
    finite = Engine::pack_query_rows(RowsFrom(task.q, task.dtype, query), task.dtype, count, panels,
                                     task.dim, rows.queries) &&
             finite;
    finite = Engine::pack_query_rows(RowsFrom(task.dout, task.dtype, query), task.dtype, count,
                                     panels, task.dim_v, rows.douts) &&
             finite;
    if (!finite && !Engine::kTakesAnything) return false;
    BackwardStep<Engine, Exp>(task, item.statistics, panels, key, keys, buffers, pipeline).run();
    store_dq(item, task, query, count, first, buffers);
  }
  return true;
}

template <BackwardEngine Engine>
inline void store_keys(const HeadTask& task, std::int64_t key, std::int64_t keys,
                       const BackwardBuffers<Engine>& buffers, const Pipeline<Engine>& pipeline) {
  for (std::int64_t j = 0; j < keys; j += Engine::kGradientKeys) {
    const std::int64_t b = j / Engine::kGradientKeys;
    const KeyGradients<Engine>& block = buffers.block[b];
    const std::int64_t rows = smaller(Engine::kGradientKeys, keys - j);
    if (!pipeline.summed[b]) {  // no query sees these keys
      fill(block.dk, rows * buffers.padded, 0.0F);
      fill(block.dv, rows * buffers.padded_v, 0.0F);
    }
    narrow_rows(block.dk, buffers.padded, rows, task.dim, task.scale, task.dtype,
                RowsFrom(task.dk, task.dtype, key + j));
    narrow_rows(block.dv, buffers.padded_v, rows, task.dim_v, 1.0F, task.dtype,
                RowsFrom(task.dv, task.dtype, key + j));
  }
}

/// False if the engine cannot take what the data holds; another must then do all of the item.
template <BackwardEngine Engine, class Exp>
inline bool backward_item(const BackwardItem& item, void* memory) {
  [[maybe_unused]] const typename Engine::Setup setup;
  const HeadTask& task = *item.heads;
  Scratch scratch(memory);
  const BackwardBuffers<Engine> buffers(scratch, task.dim, task.dim_v);
  static_assert(kOneBlockKeys <= Engine::kGradientKeys);
  for (std::int64_t key = item.key_begin; key < item.key_end; key += kChunk) {
    const std::int64_t keys = smaller(kChunk, item.key_end - key);
    bool finite = true;
    for (std::int64_t b = 0; b * Engine::kGradientKeys < keys; ++b) {
      const KeyGradients<Engine>& block = buffers.block[b];
      const std::int64_t from = b * Engine::kGradientKeys;
      const std::int64_t count = smaller(Engine::kGradientKeys, keys - from);
      finite = block.packed.load(task, key + from, count) && finite;
      finite = Engine::pack_key_columns(RowsFrom(task.k, task.dtype, key + from), task.dtype, count,
                                        round_up(count, Engine::kKeyStep), task.dim,
                                        block.key_columns) &&
               finite;
    }
    if (!finite && !Engine::kTakesAnything) return false;
    Pipeline<Engine> pipeline;
    for (std::int64_t h = 0; h < item.group; ++h) {
      if (!backward_head<Engine, Exp>(item, item.heads[h], key, keys, buffers, pipeline))
        return false;
    }
    pipeline.background.finish();
    store_keys(task, key, keys, buffers, pipeline);
  }
  return true;
}

inline void sum_dq(const HeadTask& task, std::int64_t begin, std::int64_t end, float* shares,
                   std::int64_t splits, std::int64_t stride, std::int64_t split_keys) {
  for (std::int64_t query = begin; query < end; ++query) {
    float* row = shares + (query - begin) * task.dim;
    bool any = false;
    for (std::int64_t s = 0; s < splits; ++s) {
      const std::int64_t last = smaller(task.len_k, (s + 1) * split_keys) - 1;
      const Span span = seeing_queries(task, s * split_keys, last);
      if (query < span.begin || query >= span.end) continue;
      const float* share = row + s * stride;
      for (std::int64_t c = 0; c < task.dim; ++c) row[c] = any ? row[c] + share[c] : share[c];
      any = true;
    }
    if (!any) fill(row, task.dim, 0.0F);
    narrow_row(row, task.dim, task.scale, task.dtype, RowsFrom(task.dq, task.dtype, query)(0));
  }
}

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
