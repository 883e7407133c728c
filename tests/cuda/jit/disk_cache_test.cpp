#include "cuda/jit/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "support/environment.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = testing::TempDir() + "strobe_disk_cache_test." + info->name();
  fs::remove_all(folder);
  return folder;
}

const Binary kBinary{.cubin = std::string("\x7f"
                                          "ELF\0and more",
                                          13),
                     .resources = {{.entry = "kernel", .registers = 40, .shared_bytes = 512}}};

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(DiskCache, GivesBackWhatWasKept) {
  const DiskCache cache(fresh_folder() / "several" / "deep");
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(cache.keep("key", kBinary), "");
  const auto found = cache.find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, kBinary.cubin);
  EXPECT_EQ(found->resources, kBinary.resources);
  EXPECT_FALSE(cache.find("another key"));
  EXPECT_EQ(cache.keep("another key", kBinary), "");
  EXPECT_EQ(cache.entries().size(), 2u);
}

TEST(DiskCache, IgnoresATornFileAndReplacesIt) {
  const DiskCache cache(fresh_folder());
  cache.keep("key", kBinary);
  const fs::path path = cache.entries().at(0).path;
  const std::string whole = contents(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(path, whole.substr(0, length));
    EXPECT_FALSE(cache.find("key")) << length;
  }
  write(path, whole + "x");
  EXPECT_FALSE(cache.find("key")) << "longer than it says";
  EXPECT_TRUE(cache.entries().empty());
  EXPECT_EQ(cache.keep("key", kBinary), "");
  EXPECT_TRUE(cache.find("key"));
}

TEST(DiskCache, IgnoresAFileWithAnyByteChanged) {
  const DiskCache cache(fresh_folder());
  cache.keep("key", kBinary);
  const fs::path path = cache.entries().at(0).path;
  const std::string whole = contents(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= 20 && at < 24) continue;  // the reserved word says nothing
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write(path, changed);
    EXPECT_FALSE(cache.find("key")) << at;
  }
}

TEST(DiskCache, IgnoresAForeignFile) {
  const DiskCache cache(fresh_folder());
  cache.keep("key", kBinary);
  cache.keep("other", kBinary);
  const auto entries = cache.entries();
  fs::copy_file(entries[0].path, entries[1].path, fs::copy_options::overwrite_existing);
  EXPECT_NE(cache.find("key").has_value(), cache.find("other").has_value())
      << "one of them holds the other's key";
  write(entries[0].path, "something else entirely, of somebody else, longer than the header");
  EXPECT_FALSE(cache.find("key"));
  EXPECT_FALSE(cache.find("other"));
}

TEST(DiskCache, SaysWhyItCannotKeep) {
  const fs::path file = fresh_folder();  // where the folder would have to be
  write(file, "a file");
  const std::string trouble = DiskCache(file).keep("key", kBinary);
  for (const char* part : {"not kept", "STROBE_CACHE_DIR", file.c_str()}) {
    EXPECT_NE(trouble.find(part), std::string::npos) << trouble;
  }
  EXPECT_FALSE(DiskCache(file).find("key"));
  EXPECT_TRUE(DiskCache(file).entries().empty());
  EXPECT_NE(DiskCache("/proc/no/such/folder").keep("key", kBinary), "");
}

TEST(DiskCache, OthersMayReadWhatTheUmaskLetsThem) {
  const DiskCache cache(fresh_folder());
  for (const auto& [mask, expected] : {std::pair<mode_t, fs::perms>{0022, fs::perms{0644}},
                                       {0002, fs::perms{0664}},
                                       {0077, fs::perms{0600}}}) {
    const mode_t before = umask(mask);
    EXPECT_EQ(cache.keep("key", kBinary), "");
    umask(before);
    EXPECT_EQ(fs::status(cache.entries().at(0).path).permissions(), expected);
  }
}

/// Ends the process, which becomes that of another user if this one may read everything.
[[noreturn]] void tell_another_user(const DiskCache& cache) {
  const bool other = geteuid() != 0 || setuid(65534) == 0;
  if (other) std::fputs(cache.unreadable("key").c_str(), stderr);
  _exit(other ? 0 : 1);
}

TEST(DiskCache, SaysThatAFileMayNotBeRead) {
  const DiskCache cache(fresh_folder());
  EXPECT_EQ(cache.unreadable("key"), "") << "there is none";
  cache.keep("key", kBinary);
  EXPECT_EQ(cache.unreadable("key"), "");
  const auto expect_told = [&] {
    EXPECT_EXIT(tell_another_user(cache), testing::ExitedWithCode(0),
                "may not read.*SaysThatAFileMayNotBeRead.*STROBE_CACHE_DIR");
  };
  fs::permissions(cache.entries().at(0).path, fs::perms::none);
  expect_told();
  fs::permissions(cache.folder(), fs::perms::none);
  expect_told();
  fs::permissions(cache.folder(), fs::perms::owner_all);
}

TEST(DiskCache, AFullDiskIsToldAndLeavesNothing) {
  const DiskCache cache(fresh_folder());
  EXPECT_EQ(cache.keep("small", kBinary), "");
  // A limit on the size of files looks the same to the writer: some bytes go in, then no more do.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  const std::string trouble = cache.keep("large", {.cubin = std::string(5000, 'x')});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(trouble, "");
  EXPECT_FALSE(cache.find("large"));
  EXPECT_TRUE(cache.find("small"));
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.folder()), {}), 1) << "nothing beside";
}

TEST(DiskCache, ClearsItsOwnFilesAlone) {
  const DiskCache cache(fresh_folder());
  cache.keep("one", kBinary);
  cache.keep("two", kBinary);
  write(cache.folder() / "0123456789abcdef.kernel.Ab12cD", "left by a process that was killed");
  write(cache.folder() / "notes.txt", "somebody's");
  EXPECT_GT(cache.clear(), 0);
  EXPECT_TRUE(cache.entries().empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.folder()), {}), 1);
  EXPECT_TRUE(fs::exists(cache.folder() / "notes.txt"));
  EXPECT_EQ(cache.clear(), 0);
}

TEST(DiskCache, IsWhereTheVariableSays) {
  const strobe::test::ScopedVariable folder("STROBE_CACHE_DIR", "/somewhere");
  EXPECT_EQ(user_cache().folder(), "/somewhere/kernels");
}

}  // namespace
}  // namespace strobe::cuda::jit
