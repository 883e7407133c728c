#include "experiment/tiled_attention.h"

#include <algorithm>

#include "experiment/cache_simulator.h"

namespace strobe::lab {
namespace {

constexpr std::int64_t kFloatBytes = 4;

/// A matrix in the memory that the cache lies before.
struct StoredMatrix {
  std::int64_t address = 0, columns = 0;

  /// Where row `row`, from `column` on, begins.
  std::int64_t at(std::int64_t row, std::int64_t column = 0) const {
    return address + (row * columns + column) * kFloatBytes;
  }
};

/// Rows [begin, end) of a matrix, or some columns of them.
struct MatrixPart {
  const StoredMatrix& matrix;
  std::int64_t begin = 0, end = 0;
  std::int64_t column = 0, columns = 0;

  template <class Access>
  void each_row(const Access& access) const {
    for (std::int64_t row = begin; row < end; ++row)
      access(matrix.at(row, column), columns * kFloatBytes);
  }
};

void read_part(CacheSimulator& cache, const MatrixPart& part) {
  part.each_row([&](std::int64_t address, std::int64_t bytes) { cache.read(address, bytes); });
}

void write_part(CacheSimulator& cache, const MatrixPart& part) {
  part.each_row([&](std::int64_t address, std::int64_t bytes) { cache.write(address, bytes); });
}

/// Everything that either algorithm touches, one after the other in memory.
struct StoredAttention {
  StoredMatrix q, k, v, out, scores, tile;

  explicit StoredAttention(const TiledAttention& shape) {
    std::int64_t next = 0;
    const auto place = [&next](std::int64_t rows, std::int64_t columns) {
      const StoredMatrix matrix{.address = next, .columns = columns};
      next += rows * columns * kFloatBytes;
      next = (next + CacheSimulator::kLineBytes - 1) / CacheSimulator::kLineBytes *
             CacheSimulator::kLineBytes;
      return matrix;
    };
    q = place(shape.length, shape.dim);
    k = place(shape.length, shape.dim);
    v = place(shape.length, shape.dim);
    out = place(shape.length, shape.dim);
    scores = place(shape.length, shape.length);
    tile = place(shape.tile, shape.tile);
  }
};

template <class Body>
void for_each_tile(const TiledAttention& shape, const Body& body) {
  for (std::int64_t begin = 0; begin < shape.length; begin += shape.tile)
    body(begin, std::min(begin + shape.tile, shape.length));
}

}  // namespace

TiledAttention TiledAttention::fitting(std::int64_t length, std::int64_t dim,
                                       std::int64_t memory_bytes) {
  constexpr std::int64_t kStep = 4;
  const std::int64_t room = memory_bytes / 4 * 3 / kFloatBytes;
  TiledAttention shape{.length = length, .dim = dim, .tile = kStep};
  const auto fits = [&](std::int64_t rows) { return 4 * rows * dim + rows * rows <= room; };
  while (shape.tile < length && fits(shape.tile + kStep)) shape.tile += kStep;
  return shape;
}

double TiledAttention::matrix_bytes() const {
  return static_cast<double>(length * dim * kFloatBytes);
}

double TiledAttention::score_bytes() const {
  return static_cast<double>(length * length * kFloatBytes);
}

Traffic TiledAttention::predicted_flash() const {
  const auto passes = static_cast<double>(blocks());
  return {.read = matrix_bytes() * (1 + 2 * passes), .written = matrix_bytes()};
}

Traffic TiledAttention::predicted_unfused() const {
  const auto passes = static_cast<double>(blocks());
  return {.read = matrix_bytes() * (1 + 2 * passes) + 2 * score_bytes(),
          .written = matrix_bytes() + 2 * score_bytes()};
}

Traffic TiledAttention::simulated_flash(std::int64_t memory_bytes) const {
  const StoredAttention stored(*this);
  CacheSimulator cache(memory_bytes);
  for_each_tile(*this, [&](std::int64_t first, std::int64_t last) {
    const MatrixPart queries{stored.q, first, last, 0, dim},
        output{stored.out, first, last, 0, dim};
    for_each_tile(*this, [&](std::int64_t begin, std::int64_t end) {
      const MatrixPart scores{stored.tile, 0, last - first, 0, end - begin};
      read_part(cache, queries);
      read_part(cache, {stored.k, begin, end, 0, dim});
      write_part(cache, scores);
      read_part(cache, scores);
      read_part(cache, {stored.v, begin, end, 0, dim});
      if (begin > 0) read_part(cache, output);
      write_part(cache, output);
    });
  });
  // The tile of scores is no tensor: that it is written back in the end is the simulation's doing.
  Traffic traffic = cache.traffic();
  const double scratch = static_cast<double>(tile * tile * kFloatBytes);
  traffic.written = std::max(traffic.written - scratch, 0.0);
  return traffic;
}

Traffic TiledAttention::simulated_unfused(std::int64_t memory_bytes) const {
  const StoredAttention stored(*this);
  CacheSimulator cache(memory_bytes);
  for_each_tile(*this, [&](std::int64_t first, std::int64_t last) {
    for_each_tile(*this, [&](std::int64_t begin, std::int64_t end) {
      read_part(cache, {stored.q, first, last, 0, dim});
      read_part(cache, {stored.k, begin, end, 0, dim});
      write_part(cache, {stored.scores, first, last, begin, end - begin});
    });
  });
  for (std::int64_t row = 0; row < length; ++row) {
    const MatrixPart weights{stored.scores, row, row + 1, 0, length};
    read_part(cache, weights);
    write_part(cache, weights);
  }
  for_each_tile(*this, [&](std::int64_t first, std::int64_t last) {
    const MatrixPart output{stored.out, first, last, 0, dim};
    for_each_tile(*this, [&](std::int64_t begin, std::int64_t end) {
      read_part(cache, {stored.scores, first, last, begin, end - begin});
      read_part(cache, {stored.v, begin, end, 0, dim});
      if (begin > 0) read_part(cache, output);
      write_part(cache, output);
    });
  });
  return cache.traffic();
}

}  // namespace strobe::lab
