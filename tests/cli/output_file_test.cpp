#include "cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "strobe/error.h"

namespace strobe::test {
namespace {

namespace fs = std::filesystem;

/// A folder with a file in it that is somebody's.
std::string folder_with_file() {
  const std::string folder = fresh_path("folder");
  fs::create_directory(folder);
  std::ofstream(folder + "/precious") << "precious\n";
  return folder;
}

std::ptrdiff_t count_files(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(OutputFile, WhatAppearedMeanwhileIsReplacedOnlyByForce) {
  const std::string folder = folder_with_file(), path = folder + "/precious";
  EXPECT_THROW(cli::write_output("-o", path, "new\n", false), InvalidArgument);
  EXPECT_EQ(read_file(path), "precious\n");
  EXPECT_EQ(count_files(folder), 1) << "no draft is left";
  cli::write_output("-o", path, "new\n", true);
  EXPECT_EQ(read_file(path), "new\n");
  cli::write_output("-o", folder + "/other", "other\n", false);
  EXPECT_EQ(read_file(folder + "/other"), "other\n");
  EXPECT_EQ(count_files(folder), 2);
}

}  // namespace
}  // namespace strobe::test
