#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/jit/resources.h"
#include "cuda/jit/tuning_store.h"

// Ways to cut a problem as people write them, and which of them is taken.
namespace strobe::cuda {

/// "192x128/2/2": the queries and keys of a tile, and two numbers more that each kernel has its own
/// meaning for.
struct TileText {
  int queries = 0;
  int keys = 0;
  int first = 0;
  int second = 0;

  std::string text() const;

  /// Nothing for any other text. The last two may be left out, and are then those of `otherwise`.
  static std::optional<TileText> parse(std::string_view text, const TileText& otherwise);
};

/// How a kernel is cut, and why so.
template <class Config>
struct Chosen {
  enum class By { usual, tuned, asked };

  Config config{};
  By by = By::usual;

  bool tuned() const { return by == By::tuned; }
  bool asked() const { return by == By::asked; }  ///< and not the usual one
};

/// Throws InvalidArgument that says how a variant is written.
[[noreturn]] void refuse_variant(const std::string& asked, std::string_view form);

/// Throws Unsupported if the kernel keeps in local memory what its registers do not hold.
void refuse_spills(const std::string& variant, const std::vector<jit::Resources>& resources);

/// What was asked for, else what was tuned, else the usual. `read` makes a configuration of a
/// variant's text, or nothing if it is wrong or does not fit, and `form` says what is right.
template <class Config, class Read>
Chosen<Config> choose_variant(const Config& usual, const std::string& asked, const Read& read,
                              std::string_view form, const jit::Tunable& what) {
  using By = typename Chosen<Config>::By;
  if (!asked.empty()) {
    const std::optional<Config> config = read(asked);
    if (!config) refuse_variant(asked, form);
    return {*config, config->shape == usual.shape ? By::usual : By::asked};
  }
  if (const auto tuned = jit::tuned_variant(what)) {
    if (const std::optional<Config> config = read(*tuned)) return {*config, By::tuned};
  }
  return {usual, By::usual};
}

/// The usual one first, then the others.
template <class Shape>
std::vector<std::string> variant_texts(const Shape& usual, const std::vector<Shape>& shapes,
                                       std::string (*text_of)(const Shape&)) {
  std::vector<std::string> texts{text_of(usual)};
  for (const Shape& shape : shapes) {
    std::string text = text_of(shape);
    if (text != texts.front()) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace strobe::cuda
