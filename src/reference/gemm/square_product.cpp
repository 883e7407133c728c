#include <algorithm>
#include <vector>

#include "core/text.h"
#include "core/threads.h"
#include "reference/gemm/library.h"
#include "strobe/error.h"
#include "strobe/product.h"

namespace strobe {
namespace {

using namespace reference::gemm;

// The library would pack the right operand anew for fewer rows, and more of them could not be
// shared out evenly.
constexpr std::int64_t kRows = 256;

/// Rows [item · kRows, ...) of the product.
void multiply_rows(const Library& library, std::int64_t item, Product product, DType dtype) {
  const std::int64_t size = product.depth, first = item * kRows;
  const auto bytes = first * size * static_cast<std::int64_t>(size_of(dtype));
  product.rows = std::min(kRows, size - first);
  product.left.data = static_cast<const std::byte*>(product.left.data) + bytes;
  product.out += first * size;
  const ThreadOfCall alone(library);
  library.multiply(product);
}

}  // namespace

SquareProduct cpu_square_product(std::int64_t size, DType dtype, int threads) {
  const Found found = find_library();
  if (found.library == nullptr) throw Unsupported("a product of matrices", {found.missing});
  const Library& library = *found.library;
  const bool bf16 = dtype == DType::bf16;
  if (dtype != DType::fp32 && !(bf16 && library.multiplies_bf16())) {
    throw Unsupported(library.name(),
                      {concat("products of ", name_of(dtype), " on this CPU (has those of fp32",
                              library.multiplies_bf16() ? " and bf16)" : ")")});
  }
  const int all = threads > 0 ? threads : default_threads();
  const auto multiply = [&library, size, dtype, all](const void* left, const void* right,
                                                     void* out) {
    const Call call(library);
    const Product product{.columns = size,
                          .depth = size,
                          .left = {left, size},
                          .right = {right, size},
                          .bf16 = dtype == DType::bf16,
                          .out = static_cast<float*>(out),
                          .out_stride = size};
    parallel_for("product", (size + kRows - 1) / kRows, all,
                 [&](std::int64_t item, int) { multiply_rows(library, item, product, dtype); });
  };
  return {.library = library.name(), .out = DType::fp32, .multiply = multiply};
}

}  // namespace strobe
