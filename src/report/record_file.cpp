#include "report/record_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>

#include "report/record.h"
#include "strobe/error.h"

namespace strobe::lab {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& why) {
  throw InvalidArgument("records", fmt::format("'{}', line {}: {}", path, line, why));
}

json read_record(const std::string& text, const std::string& path, std::size_t line) {
  json record = json::parse(text, nullptr, false);
  if (record.is_discarded()) {
    refuse(path, line, "is not a whole JSON object, it may have been cut off; remove that line");
  }
  if (!record.is_object() || !record.contains("schema") || !record["schema"].is_number_integer()) {
    refuse(path, line, "is not a record of strobe, which --json writes one a line");
  }
  if (record["schema"] != kRecordSchema) {
    refuse(
        path, line,
        fmt::format("has schema {}, this strobe reads {}", record["schema"].dump(), kRecordSchema));
  }
  return record;
}

}  // namespace

std::vector<json> read_records(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    throw InvalidArgument("records", fmt::format("'{}' cannot be read: {}", path,
                                                 file ? "it is a folder" : std::strerror(errno)));
  }
  return read_records(file, path);
}

std::vector<json> read_records(std::istream& text, const std::string& path) {
  std::vector<json> records;
  std::size_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    records.push_back(read_record(line, path, number));
  }
  return records;
}

}  // namespace strobe::lab
