#include "cuda/jit/sources.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

namespace strobe::cuda::jit {
namespace {

std::optional<std::string_view> find_embedded(std::string_view path) {
  for (const auto& [name, text] : embedded_sources()) {
    if (name == path) return text;
  }
  return std::nullopt;
}

/// The name in an `#include "name"`, "" in any other line.
std::string_view included_name(std::string_view line) {
  const auto skip_spaces = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  for (const std::string_view word : {"#", "include", "\""}) {
    skip_spaces();
    if (!line.starts_with(word)) return {};
    line.remove_prefix(word.size());
  }
  const std::size_t end = line.find('"');
  return end == std::string_view::npos ? std::string_view{} : line.substr(0, end);
}

std::vector<std::string> included_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto name = included_name(text.substr(0, end)); !name.empty()) {
      names.emplace_back(name);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

}  // namespace

std::string_view embedded_source(std::string_view path) {
  if (const auto text = find_embedded(path)) return *text;
  throw std::logic_error("no such kernel source: " + std::string(path));
}

Headers included_headers(std::string_view text, const Headers& extra) {
  Headers found;
  std::vector<std::string> wanted = included_names(text);
  while (!wanted.empty()) {
    const std::string name = std::move(wanted.back());
    wanted.pop_back();
    if (found.contains(name)) continue;
    if (const auto own = extra.find(name); own != extra.end()) {
      found[name] = own->second;
    } else if (const auto embedded = find_embedded(name)) {
      found[name] = *embedded;
    } else {
      continue;
    }
    for (std::string& next : included_names(found[name])) wanted.push_back(std::move(next));
  }
  return found;
}

}  // namespace strobe::cuda::jit
