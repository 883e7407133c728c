#include "strobe/dtype.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/convert.h"
#include "strobe/error.h"

namespace strobe {
namespace {

struct Description {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kDescriptions = {
    Description{DType::fp32, "fp32", 4},   Description{DType::fp16, "fp16", 2},
    Description{DType::bf16, "bf16", 2},   Description{DType::fp8_e4m3, "fp8e4m3", 1},
    Description{DType::int8, "int8", 1},   Description{DType::uint8, "uint8", 1},
    Description{DType::int32, "int32", 4},
};

constexpr bool each_is_at_its_number() {
  for (std::size_t i = 0; i < kDescriptions.size(); ++i) {
    if (static_cast<std::size_t>(kDescriptions[i].dtype) != i) return false;
  }
  return true;
}
static_assert(each_is_at_its_number());

const Description& describe(DType dtype) {
  const auto number = static_cast<std::size_t>(dtype);
  if (number < kDescriptions.size()) return kDescriptions[number];
  throw InvalidArgument("dtype",
                        "is " + std::to_string(static_cast<int>(dtype)) + ", which names no type");
}

/// A binary floating-point format: value = ±1.f · 2^e with `fraction_bits` bits of f.
struct Format {
  int fraction_bits;
  int min_exponent;  // of the smallest normal number
  double largest;
  double beyond;  // what a value past `largest` becomes
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Format kFp32{23, -126, 0x1.fffffep127, kInfinity};
constexpr Format kFp16{10, -14, 65504.0, kInfinity};
constexpr Format kBf16{7, -126, 0x1.fep127, kInfinity};
constexpr Format kFp8{3, -6, 448.0, kNaN};  // e4m3 has no infinity

/// The nearest value of the format, ties to even; one rounding whatever the format.
double round_in(const Format& format, double value) {
  if (value == 0 || !std::isfinite(value)) {
    return std::isinf(value) ? std::copysign(format.beyond, value) : value;
  }
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, format.fraction_bits - exponent)),
                 exponent - format.fraction_bits);
  return std::fabs(rounded) > format.largest ? std::copysign(format.beyond, value) : rounded;
}

double round_integer(double value, double low, double high) {
  if (std::isnan(value)) return 0;
  return std::nearbyint(std::fmin(std::fmax(value, low), high));
}

float fp8_to_float(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int fraction = bits & 7;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t float_to_fp8(float value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  const double rounded = std::fabs(round_in(kFp8, value));
  if (std::isnan(rounded)) return static_cast<std::uint8_t>(sign | 0x7F);
  if (rounded < 0x1p-6) return static_cast<std::uint8_t>(sign | static_cast<int>(rounded * 512));
  const int exponent = std::ilogb(rounded);
  const int fraction = static_cast<int>(std::ldexp(rounded, 3 - exponent)) - 8;
  return static_cast<std::uint8_t>(sign | ((exponent + 7) << 3) | fraction);
}

}  // namespace

std::size_t size_of(DType dtype) {
  return describe(dtype).bytes;
}

std::string_view name_of(DType dtype) {
  return describe(dtype).name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& description : kDescriptions) {
    if (description.name == name) return description.dtype;
  }
  return std::nullopt;
}

float load_element(const void* data, std::int64_t index, DType dtype) {
  float value = 0;
  widen(static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype)), 1,
        dtype, &value);
  return value;
}

void store_element(void* data, std::int64_t index, DType dtype, float value) {
  narrow(&value, 1, dtype,
         static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(size_of(dtype)));
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::fp32:
      return round_in(kFp32, value);
    case DType::fp16:
      return round_in(kFp16, value);
    case DType::bf16:
      return round_in(kBf16, value);
    case DType::fp8_e4m3:
      return round_in(kFp8, value);
    case DType::int8:
      return round_integer(value, -128, 127);
    case DType::uint8:
      return round_integer(value, 0, 255);
    case DType::int32:
      return round_integer(value, -2147483648.0, 2147483647.0);
  }
  return value;
}

float round_to(DType dtype, float value) {
  return static_cast<float>(round_to(dtype, static_cast<double>(value)));
}

void widen(const void* source, std::int64_t count, DType dtype, float* target) {
  const auto each = [&](auto element, auto convert) {
    const auto* from = static_cast<const decltype(element)*>(source);
    for (std::int64_t i = 0; i < count; ++i) target[i] = convert(from[i]);
  };
  const auto integer = [](auto value) { return static_cast<float>(value); };
  switch (dtype) {
    case DType::fp32:
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
      break;
    case DType::fp16:
      each(std::uint16_t{}, fp16_to_float);
      break;
    case DType::bf16:
      each(std::uint16_t{}, bf16_to_float);
      break;
    case DType::fp8_e4m3:
      each(std::uint8_t{}, fp8_to_float);
      break;
    case DType::int8:
      each(std::int8_t{}, integer);
      break;
    case DType::uint8:
      each(std::uint8_t{}, integer);
      break;
    case DType::int32:
      each(std::int32_t{}, integer);
      break;
  }
}

void narrow(const float* source, std::int64_t count, DType dtype, void* target) {
  const auto each = [&](auto element, auto convert) {
    auto* to = static_cast<decltype(element)*>(target);
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert(source[i]);
  };
  switch (dtype) {
    case DType::fp32:
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
      break;
    case DType::fp16:
      each(std::uint16_t{}, float_to_fp16);
      break;
    case DType::bf16:
      each(std::uint16_t{}, float_to_bf16);
      break;
    case DType::fp8_e4m3:
      each(std::uint8_t{}, float_to_fp8);
      break;
    case DType::int8:
      each(std::int8_t{},
           [](float v) { return static_cast<std::int8_t>(round_integer(v, -128, 127)); });
      break;
    case DType::uint8:
      each(std::uint8_t{},
           [](float v) { return static_cast<std::uint8_t>(round_integer(v, 0, 255)); });
      break;
    case DType::int32:
      each(std::int32_t{}, [](float v) {
        return static_cast<std::int32_t>(round_integer(v, -2147483648.0, 2147483647.0));
      });
      break;
  }
}

}  // namespace strobe
