#include "cuda/kernels/variant.h"

#include <charconv>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe::cuda {

std::string TileText::text() const {
  return concat(queries, "x", keys, "/", first, "/", second);
}

std::optional<TileText> TileText::parse(std::string_view text, const TileText& otherwise) {
  TileText tile = otherwise;
  const char* next = text.data();
  const char* const end = next + text.size();
  const auto take = [&](int& number) {
    const auto read = std::from_chars(next, end, number);
    next = read.ptr;
    return read.ec == std::errc{};
  };
  const auto skip = [&](char separator) {
    const bool there = next != end && *next == separator;
    if (there) ++next;
    return there;
  };
  if (!take(tile.queries) || !skip('x') || !take(tile.keys)) return std::nullopt;
  for (int* number : {&tile.first, &tile.second}) {
    if (next != end && !(skip('/') && take(*number))) return std::nullopt;
  }
  return next == end ? std::optional(tile) : std::nullopt;
}

void refuse_variant(const std::string& asked, std::string_view form) {
  throw InvalidArgument("variant", concat("is '", asked, "', allowed is ", form,
                                          "; strobe tune --list shows those that are"));
}

void refuse_spills(const std::string& variant, const std::vector<jit::Resources>& resources) {
  int bytes = 0;
  for (const jit::Resources& r : resources)
    bytes += r.spill_store_bytes + r.spill_load_bytes + r.stack_bytes;
  if (bytes == 0) return;
  throw Unsupported(concat("variant ", variant),
                    {concat("registers enough, it would keep ", bytes, " bytes in local memory")});
}

}  // namespace strobe::cuda
