#pragma once

#include <string_view>

namespace strobe::lab {

/// A file of src/report/page, or "chart.js", as it was when the program was built. Throws
/// std::logic_error for any other name.
std::string_view page_resource(std::string_view name);

}  // namespace strobe::lab
