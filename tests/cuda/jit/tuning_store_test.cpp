#include "cuda/jit/tuning_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "core/text.h"
#include "cuda/jit/kept_files.h"
#include "support/environment.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

TuningStore fresh_store() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = testing::TempDir() + "strobe_tuning_store_test." + info->name();
  fs::remove_all(folder);
  return TuningStore(folder);
}

TuningKey key_for(const std::string& problem) {
  return {.gpu = "NVIDIA H200",
          .architecture = "sm_90a",
          .compiler = "NVRTC 13.0",
          .kernel = "hopper_forward",
          .sources = "0123456789abcdef",
          .problem = problem};
}

const TunedVariant kTuned{
    .variant = "192x96/2/3", .usual = "128x128/2/2", .ms = 0.1 + 0.2, .usual_ms = 1.25e-3};

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(TuningStore, GivesBackWhatWasKept) {
  const TuningStore store = fresh_store();
  EXPECT_TRUE(store.entries().empty());
  TuningKey key = key_for("b2 sq4096 h16 d128 bf16");
  key.options = "deterministic";
  EXPECT_EQ(store.keep(key, kTuned), "");
  ASSERT_EQ(store.entries().size(), 1u);
  const TuningStore::Entry entry = store.entries().front();
  EXPECT_EQ(entry.key, key);
  EXPECT_EQ(entry.tuned.variant, kTuned.variant);
  EXPECT_EQ(entry.tuned.usual, kTuned.usual);
  EXPECT_EQ(entry.tuned.ms, kTuned.ms);
  EXPECT_EQ(entry.tuned.usual_ms, kTuned.usual_ms);
  EXPECT_GT(entry.bytes, 0);
}

TEST(TuningStore, KeepsOneForEachKeyAndForgetsIt) {
  const TuningStore store = fresh_store();
  store.keep(key_for("b1 sq64"), kTuned);
  store.keep(key_for("b1 sq65"), kTuned);
  store.keep(key_for("b1 sq64"), {.variant = "another"});
  ASSERT_EQ(store.entries().size(), 2u);
  store.forget(key_for("b1 sq65"));
  ASSERT_EQ(store.entries().size(), 1u);
  EXPECT_EQ(store.entries().front().tuned.variant, "another");
  store.forget(key_for("b1 sq65"));
}

TEST(TuningStore, IgnoresATornFile) {
  const TuningStore store = fresh_store();
  store.keep(key_for("b1 sq64"), kTuned);
  const fs::path path = store.entries().at(0).path;
  const std::string whole = read_kept_file(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(path, whole.substr(0, length));
    EXPECT_TRUE(store.entries().empty()) << length;
  }
  EXPECT_EQ(store.keep(key_for("b1 sq64"), kTuned), "");
  EXPECT_EQ(store.entries().size(), 1u) << "and replaces it";
}

TEST(TuningStore, IgnoresForeignFilesAndOtherVersions) {
  const TuningStore store = fresh_store();
  store.keep(key_for("b1 sq64"), kTuned);
  const fs::path path = store.entries().at(0).path;
  std::string changed = read_kept_file(path);
  fs::copy_file(path, store.folder() / "0123456789abcdef.variant");
  EXPECT_EQ(store.entries().size(), 1u) << "the copy is not where its key belongs";
  changed.replace(changed.find("tuned 1"), 7, "tuned 2");
  write(path, changed);
  EXPECT_TRUE(store.entries().empty()) << "of a later version";
  write(path, "somebody else's, and longer than one line\nof text\n");
  EXPECT_TRUE(store.entries().empty());
}

TEST(TuningStore, SaysWhyItCannotKeep) {
  const fs::path file = fresh_store().folder();  // where the folder would have to be
  write(file, "a file");
  const std::string trouble = TuningStore(file).keep(key_for("b1 sq64"), kTuned);
  for (const char* part : {"192x96/2/3", "not kept", "STROBE_CACHE_DIR", file.c_str()}) {
    EXPECT_NE(trouble.find(part), std::string::npos) << trouble;
  }
  EXPECT_TRUE(TuningStore(file).entries().empty());
  TuningStore(file).forget(key_for("b1 sq64"));
}

TEST(TuningStore, ParallelWritersDoNotHarmEachOther) {
  const TuningStore store = fresh_store();
  constexpr int kWriters = 8;
  constexpr int kProblems = 20;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&store, writer] {
        for (int i = 0; i < kProblems; ++i) {
          store.keep(key_for(concat("shared ", i)), {.variant = concat(writer)});
          store.keep(key_for(concat("own ", writer, " ", i)), kTuned);
          for (const auto& entry : store.entries()) EXPECT_NE(entry.tuned.variant, "");
        }
      });
    }
  }
  EXPECT_EQ(store.entries().size(), std::size_t{kProblems * (kWriters + 1)}) << "none is lost";
  EXPECT_EQ(kept_files(store.folder(), ".variant").size(), store.entries().size())
      << "nothing is left beside";
}

TEST(TuningStore, ClearsItsOwnFilesAlone) {
  const TuningStore store = fresh_store();
  store.keep(key_for("b1 sq64"), kTuned);
  write(store.folder() / "0123456789abcdef.variant.Ab12cD", "left by a process that was killed");
  write(store.folder() / "notes.txt", "somebody's");
  EXPECT_GT(store.clear(), 0);
  EXPECT_TRUE(store.entries().empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(store.folder()), {}), 1);
  EXPECT_EQ(store.clear(), 0);
}

TEST(TuningStore, IsBesideTheKernels) {
  const strobe::test::ScopedVariable folder("STROBE_CACHE_DIR", "/somewhere");
  EXPECT_EQ(user_tuning().folder(), "/somewhere/tuned");
}

}  // namespace
}  // namespace strobe::cuda::jit
