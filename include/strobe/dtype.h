#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "strobe/export.h"

namespace strobe {

/// Element types. Attention is computed over the floating ones; int32 carries
/// sequence offsets, uint8 an exported dropout mask.
enum class DType : std::uint8_t { fp32, fp16, bf16, fp8_e4m3, int8, uint8, int32 };

/// Bytes of one element.
STROBE_API std::size_t size_of(DType dtype);

/// The short name used in text forms and records: "bf16", "fp8e4m3", ...
STROBE_API std::string_view name_of(DType dtype);

/// The type with that name; nothing if there is none.
STROBE_API std::optional<DType> parse_dtype(std::string_view name);

/// One element as float32, whatever its type. Exact for every type here but large int32.
STROBE_API float load_element(const void* data, std::int64_t index, DType dtype);

/// Stores with round-to-nearest-even. Values beyond the range become infinity where the type
/// has one, NaN in fp8 e4m3 (which has none), and the nearest bound in the integer types.
STROBE_API void store_element(void* data, std::int64_t index, DType dtype, float value);

/// `value` as the type can hold it.
STROBE_API float round_to(DType dtype, float value);

/// `value` rounded once, from float64 to the type (no double rounding through float32).
STROBE_API double round_to(DType dtype, double value);

}  // namespace strobe
