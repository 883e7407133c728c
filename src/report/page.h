#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace strobe::lab {

struct PageOptions {
  std::string title = "Strobe report";
};

/// One HTML page that shows these records and needs nothing else: no network, no other file. It
/// holds the records themselves, each once however often it is given, and depends on nothing but
/// the arguments. Texts in a record are shown as they are and cannot become part of the page.
std::string render_page(const std::vector<nlohmann::json>& records, const PageOptions& options);

}  // namespace strobe::lab
