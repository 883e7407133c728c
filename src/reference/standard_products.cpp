#include <array>

#include "core/convert.h"
#include "reference/row_math.h"
#include "reference/standard.h"

namespace strobe::reference {
namespace {

// Rows [block.begin, block.end) of `rows` into the block's slot of `floats`.
void unpack(const StandardRun& run, const Block& block, const TensorView& rows,
            const Matrices& floats) {
  for (std::int64_t row = block.begin; row < block.end; ++row) {
    widen(row_data(rows, row), rows.shape[1], rows.dtype,
          run.floats(floats, block.sequence.index, block.head, row));
  }
}

// The same, each row into a column.
void unpack_transposed(const StandardRun& run, const Block& block, const TensorView& rows,
                       const Matrices& floats) {
  float* values = run.scratch(run.plan.sums, block.thread);
  for (std::int64_t row = block.begin; row < block.end; ++row) {
    widen(row_data(rows, row), rows.shape[1], rows.dtype, values);
    float* column = run.floats(floats, block.sequence.index, block.head, 0, row);
    for (std::int64_t c = 0; c < rows.shape[1]; ++c) column[c * floats.columns] = values[c];
  }
}

// The part of scores that `keys` and the queries of one block share, transposed into the marks and
// weights of the thread. Returns whether any of those queries sees any of those keys.
bool load_tile(const StandardRun& run, const Block& queries, const Block& keys, Weights which) {
  const Problem& problem = run.problem;
  float* marks = run.scratch(run.plan.marks, keys.thread);
  float* weights = run.scratch(run.plan.weights, keys.thread);
  float* row = run.scratch(run.plan.scores_row, keys.thread);
  std::fill_n(marks, kBlock * kBlock, kHidden);

  bool any = false;
  for (std::int64_t query = queries.begin; query < queries.end; ++query) {
    const KeyRange visible = queries.visible(problem, query);
    const std::int64_t begin = std::max(visible.begin, keys.begin);
    const std::int64_t count = std::min(visible.end, keys.end) - begin;
    if (count <= 0) continue;
    any = true;
    const auto load = [&](const Matrices& from) {
      widen(run.at(from, queries.sequence.index, queries.head, query, begin), count, problem.dtype,
            row);
    };
    const auto transpose = [&](float* tile) {
      float* column = tile + (begin - keys.begin) * kBlock + (query - queries.begin);
      for (std::int64_t n = 0; n < count; ++n) column[n * kBlock] = row[n];
    };
    load(run.plan.scores);
    transpose(marks);
    if (which == Weights::ds) {
      load(run.plan.dscores);
    } else if (problem.dropout != 0) {
      std::array<float, kBlock> stored;
      apply_dropout(problem, queries, query, begin, row, row, count);
      store_rounded(problem, row, count, stored.data());
    }
    transpose(weights);
  }
  return any;
}

}  // namespace

void unpack_operands(const StandardRun& run) {
  const Tensors& tensors = run.tensors;
  const StandardPlan& plan = run.plan;
  const bool backward = run.problem.pass == Pass::backward;
  for_each_query_block("unpack queries", run, [&](const Block& block) {
    unpack(run, block, query_rows(tensors.q, block.sequence, block.head), plan.q);
    if (backward) {
      unpack(run, block, query_rows(tensors.dout, block.sequence, block.head), plan.dout);
    }
  });
  for_each_key_block("unpack keys", run, [&](const Block& block) {
    const TensorView k = key_rows(tensors.k, block.sequence, block.head);
    const TensorView v = key_rows(tensors.v, block.sequence, block.head);
    unpack_transposed(run, block, k, plan.k_t);
    if (backward) {
      unpack(run, block, k, plan.k);
      unpack_transposed(run, block, v, plan.v_t);
    } else {
      unpack(run, block, v, plan.v);
    }
  });
}

void multiply_transposed(const StandardRun& run, const Block& queries, const float* left,
                         const Matrices& right_t, KeyRange keys, float* out) {
  const std::int64_t kv_head = queries.head / run.problem.group();
  const float* right = run.floats(right_t, queries.sequence.index, kv_head, 0, keys.begin);
  std::fill_n(out, keys.size(), 0.0F);
  add_rows(out, keys.size(), left, right_t.rows, right, right_t.columns);
}

void sum_over_keys(const StandardRun& run, Weights which, const Matrices& rows, float factor,
                   const TensorView& output) {
  const DType dtype = run.problem.dtype;
  for_each_query_block("sum over keys", run, [&](const Block& block) {
    const std::int64_t sequence = block.sequence.index;
    const TensorView out = query_rows(output, block.sequence, block.head);
    float* p = run.scratch(run.plan.scores_row, block.thread);
    float* sums = run.scratch(run.plan.sums, block.thread);
    float* ds = run.scratch(run.plan.other_row, block.thread);

    for (std::int64_t query = block.begin; query < block.end; ++query) {
      const KeyRange keys = block.visible(run.problem, query);
      const auto load = [&](const Matrices& from, float* row) {
        widen(run.at(from, sequence, block.head, query, keys.begin), keys.size(), dtype, row);
      };
      load(run.plan.scores, p);
      if (which == Weights::ds) load(run.plan.dscores, ds);
      std::fill_n(sums, rows.columns, 0.0F);
      add_marked_rows(sums, rows.columns, which == Weights::ds ? ds : p, p, keys.size(),
                      run.floats(rows, sequence, block.head / run.problem.group(), keys.begin),
                      rows.columns);
      multiply(sums, rows.columns, factor);
      narrow(sums, rows.columns, dtype, row_data(out, query));
    }
  });
}

void sum_over_queries(const StandardRun& run, Weights which, const Matrices& rows, float factor,
                      const TensorView& output) {
  const std::int64_t group = run.problem.group();
  for_each_key_block("sum over queries", run, [&](const Block& keys) {
    const std::int64_t count = keys.end - keys.begin;
    const float* marks = run.scratch(run.plan.marks, keys.thread);
    const float* weights = run.scratch(run.plan.weights, keys.thread);
    float* sums = run.scratch(run.plan.sums, keys.thread);
    std::fill_n(sums, count * rows.columns, 0.0F);

    Block queries{.sequence = keys.sequence};
    const std::int64_t length_q = keys.sequence.length_q;
    for (queries.head = keys.head * group; queries.head < (keys.head + 1) * group; ++queries.head) {
      for (queries.begin = 0; queries.begin < length_q; queries.begin += kBlock) {
        queries.end = std::min(queries.begin + kBlock, length_q);
        if (!load_tile(run, queries, keys, which)) continue;
        const float* first = run.floats(rows, queries.sequence.index, queries.head, queries.begin);
        for (std::int64_t key = 0; key < count; ++key) {
          add_marked_rows(sums + key * rows.columns, rows.columns, weights + key * kBlock,
                          marks + key * kBlock, queries.end - queries.begin, first, rows.columns);
        }
      }
    }
    multiply(sums, count * rows.columns, factor);
    const TensorView out = key_rows(output, keys.sequence, keys.head);
    for (std::int64_t key = 0; key < count; ++key) {
      narrow(sums + key * rows.columns, rows.columns, run.problem.dtype,
             row_data(out, keys.begin + key));
    }
  });
}

}  // namespace strobe::reference
