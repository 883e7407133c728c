#include "report/page/resources.h"

#include <stdexcept>

namespace strobe::lab {

std::string_view page_resource(std::string_view name) {
  for (const auto& [known, text] : page_resources()) {
    if (known == name) return text;
  }
  throw std::logic_error("the page has no such part");
}

}  // namespace strobe::lab
