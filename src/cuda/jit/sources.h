#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace strobe::cuda::jit {

/// Every file of src/cuda that is written for the GPU, by its path from there, as it was when the
/// library was built. Generated. Each text is followed by a zero.
std::span<const std::pair<std::string_view, std::string_view>> embedded_sources();

/// Of that path. Throws std::logic_error if there is none.
std::string_view embedded_source(std::string_view path);

/// Texts by the name that they are included by.
using Headers = std::map<std::string, std::string>;

/// What `text` includes by "name", directly or not, and is found in `extra` or among the embedded
/// sources. A name that is in neither is left for the compiler to complain about.
Headers included_headers(std::string_view text, const Headers& extra);

}  // namespace strobe::cuda::jit
