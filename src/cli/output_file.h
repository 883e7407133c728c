#pragma once

#include <filesystem>
#include <string>
#include <string_view>

// Files that commands write whole, when their work is done.
namespace strobe::cli {

/// The folder that is there of a path that is to be made.
std::filesystem::path existing_part(std::filesystem::path folder);

/// Whether anything is at `path`. Throws InvalidArgument naming the option where that cannot be
/// found out, and so nothing written either.
bool is_there(const std::string& option, const std::string& path);

/// What cannot be written is better known before the work than after it: throws InvalidArgument
/// naming the option if nothing can be made in `folder` for `path`.
void require_writable(const std::string& option, const std::string& path,
                      const std::filesystem::path& folder);

/// Before any work: throws InvalidArgument naming the option if `path` exists and is not to be
/// replaced, is not a file, or lies where nothing can be written.
void require_output(const std::string& option, const std::string& path, bool force);

/// Whether two paths, of which nothing need be there yet, are of the same file or folder.
bool same_place(const std::filesystem::path& one, const std::filesystem::path& other);

/// Throws InvalidArgument naming the option if it writes the file that the other one writes. Either
/// may be "", which is none.
void require_own_file(const std::string& option, const std::string& path, const std::string& other,
                      const std::string& other_path);

/// Writes beside the file and then renames, so that a full disk costs nothing that was there.
/// Throws InvalidArgument naming the option if no file can be made there or, unless `force`, if one
/// is there by now, and Error for what goes wrong while writing.
void write_output(const std::string& option, const std::string& path, std::string_view text,
                  bool force);

}  // namespace strobe::cli
