#include "cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/output_folder.h"
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

/// Paths at which nothing can be, each for another reason. Root may search every folder, so that
/// one that may not be searched is not among them.
std::vector<std::string> impossible_paths() {
  const std::string folder = folder_with_file();
  fs::create_symlink("loop", folder + "/loop");
  return {folder + "/precious/x", folder + "/loop", folder + "/loop/x",
          folder + "/" + std::string(300, 'x')};
}

TEST(OutputFile, WhereNothingCanBeIsRefusedInASentence) {
  for (const std::string& path : impossible_paths()) {
    EXPECT_THROW(cli::require_output("-o", path, false), InvalidArgument) << path;
    EXPECT_THROW(cli::OutputFolder(path, false), InvalidArgument) << path;
    for (const std::string& command :
         {"info --json " + path, "sweep --dry-run --csv " + path, "sweep --dry-run --plots " + path,
          "sweep --seqlen 8 -o " + path, "baseline save x --dir " + path}) {
      const Outcome outcome = strobe(command);
      EXPECT_EQ(outcome.status, 2) << command << ": " << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "cannot be written: ")) << outcome.err;
    }
  }
}

TEST(OutputFile, PathsWhereNothingCanBeCanBeCompared) {
  for (const std::string& path : impossible_paths()) {
    EXPECT_TRUE(cli::same_place(path, path)) << path;
    EXPECT_FALSE(cli::same_place(path, path + "y")) << path;
  }
}

}  // namespace
}  // namespace strobe::test
