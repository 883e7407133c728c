#pragma once

#include <filesystem>
#include <string>

namespace strobe::cli {

/// Where a command leaves its files. Nothing is made or replaced before the first is written.
class OutputFolder {
 public:
  /// Throws InvalidArgument if something is there and is not to be replaced, or if it cannot be a
  /// folder.
  OutputFolder(std::string path, bool force);

  /// Writes the file of this name, replacing it if files are to be replaced, and touches no other.
  void write(const std::string& name, const std::string& text);

  /// Takes the file of this name away, which would be an earlier run's.
  void leave_out(const std::string& name);

  /// Whether a file of this path would lie in it.
  bool holds(const std::filesystem::path& file) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool force_;
};

}  // namespace strobe::cli
