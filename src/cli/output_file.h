#pragma once

#include <string>
#include <string_view>

// Files that commands write whole, when their work is done.
namespace strobe::cli {

/// Before any work: throws InvalidArgument naming the option if `path` exists and is not to be
/// replaced, is not a file, or lies where nothing can be written.
void require_output(const std::string& option, const std::string& path, bool force);

/// Writes beside the file and then renames, so that a full disk costs nothing that was there.
/// Throws InvalidArgument naming the option.
void write_output(const std::string& option, const std::string& path, std::string_view text);

}  // namespace strobe::cli
