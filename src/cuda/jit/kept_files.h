#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Files in a folder that any number of processes may use at once.
namespace strobe::cuda::jit {

/// Writes all of it, or leaves what was there; makes the folder if need be. Who may read it is for
/// the umask to say, so that several users can share a folder. Returns what went wrong, "" if
/// nothing did.
std::string write_beside_and_rename(const std::filesystem::path& path, const std::string& bytes);

/// All of it; "" if it is not there or cannot be read.
std::string read_kept_file(const std::filesystem::path& path);

/// Whether this user lacks the permission, be it for the file or for a folder that it lies in.
bool may_not_be_read(const std::filesystem::path& path);

/// The regular files of a folder whose names end so, and those that a process was killed before it
/// had renamed.
std::vector<std::filesystem::path> kept_files(const std::filesystem::path& folder,
                                              std::string_view suffix);

/// Removes them and returns how many bytes that were.
std::int64_t remove_kept_files(const std::filesystem::path& folder, std::string_view suffix);

std::int64_t bytes_of(const std::filesystem::path& path);
std::chrono::seconds age_of(const std::filesystem::path& path);

}  // namespace strobe::cuda::jit
