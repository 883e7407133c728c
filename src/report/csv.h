#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::lab {

/// The columns of the CSV form of records, in order; docs/sweep.md says what each holds.
std::vector<std::string_view> csv_columns();

/// A line of titles, then one for every record; lines end with "\n". What a record lacks, a time
/// for instance that could not be measured, is left empty. Text with a comma, a quote or a line
/// break is quoted as RFC 4180 says.
std::string csv_of(std::span<const nlohmann::json> records);

}  // namespace strobe::lab
