#include "report/page.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "report/page/resources.h"
#include "report/text.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

/// One line of JSON in ASCII, with nothing in it that ends a script element. Outside of its strings
/// JSON has none of these characters, and within them the escapes mean the same.
std::string script_safe(const json& record) {
  std::string safe;
  for (const char c : record.dump(-1, ' ', true, json::error_handler_t::replace)) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// A JSON array with a record on each line, so that the page can hand the lines out again.
std::string embed_records(const std::vector<json>& records) {
  std::unordered_set<std::string> seen;
  std::string text = "[";
  for (const json& record : records) {
    const auto [line, is_new] = seen.insert(script_safe(record));
    if (!is_new) continue;
    text += seen.size() > 1 ? ",\n" : "\n";
    text += *line;
  }
  return text + "\n]";
}

}  // namespace

std::string render_page(const std::vector<json>& records, const PageOptions& options) {
  // In the template {{name}} stands for a file of the page, the title or the records. What is put
  // in is not looked at again.
  std::string_view rest = page_resource("page.html");
  std::string page;
  for (std::size_t open; (open = rest.find("{{")) != std::string_view::npos;) {
    const std::size_t close = rest.find("}}", open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    page += rest.substr(0, open);
    if (name == "title") {
      page += escape_html(options.title);
    } else if (name == "records") {
      page += embed_records(records);
    } else {
      page += page_resource(name);
    }
    rest.remove_prefix(close + 2);
  }
  page += rest;
  return page;
}

}  // namespace strobe::lab
