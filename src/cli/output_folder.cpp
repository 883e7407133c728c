#include "cli/output_folder.h"

#include <fmt/format.h>

#include "cli/output_file.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

constexpr const char* kOption = "--out";

}  // namespace

OutputFolder::OutputFolder(std::string path, bool force) : path_(std::move(path)), force_(force) {
  const auto refuse = [this](const std::string& why) {
    throw InvalidArgument(kOption, fmt::format("'{}' {}", path_.string(), why));
  };
  if (path_.empty()) refuse("is no name; give a folder that is to be made");
  std::error_code none;
  if (is_there(kOption, path_)) {
    if (!std::filesystem::is_directory(path_, none)) refuse("is not a folder");
    if (!force) {
      refuse(
          "exists already; name another folder, or add --force to replace the files in it that "
          "this command writes");
    }
  }
  require_writable(kOption, path_, existing_part(path_));
}

void OutputFolder::write(const std::string& name, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);  // what is wrong with it shows below
  write_output(kOption, path_ / name, text, force_);
}

bool OutputFolder::holds(const std::filesystem::path& file) const {
  const std::filesystem::path folder = file.parent_path();
  return same_place(folder.empty() ? "." : folder, path_);
}

void OutputFolder::leave_out(const std::string& name) {
  if (!force_) return;  // there was no earlier run
  std::error_code none;
  std::filesystem::remove(path_ / name, none);
}

}  // namespace strobe::cli
