#include "core/user_folder.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "support/environment.h"

namespace strobe {
namespace {

namespace fs = std::filesystem;
using test::ScopedVariable;

class UserFolder : public testing::Test {
  // As if they were not set.
  const ScopedVariable own_{"STROBE_CACHE_DIR", ""};
  const ScopedVariable xdg_{"XDG_CACHE_HOME", ""};
  const ScopedVariable home_{"HOME", ""};
};

TEST_F(UserFolder, IsTheFirstThatIsNamed) {
  const ScopedVariable home("HOME", "/home/somebody");
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/strobe");
  const ScopedVariable xdg("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(cache_folder(), "/caches/strobe");
  const ScopedVariable own("STROBE_CACHE_DIR", "here");
  EXPECT_EQ(cache_folder(), "here") << "which may be relative";
}

TEST_F(UserFolder, DoesNotFollowARelativeXdg) {
  const ScopedVariable home("HOME", "/home/somebody");
  const ScopedVariable xdg("XDG_CACHE_HOME", "caches");
  EXPECT_EQ(cache_folder(), "/home/somebody/.cache/strobe");
}

TEST_F(UserFolder, IsNotInTheWorkingFolderWithoutAHome) {
  for (const char* none : {"", "somewhere"}) {
    const ScopedVariable home("HOME", none);
    EXPECT_TRUE(cache_folder().is_absolute()) << cache_folder();
    EXPECT_TRUE(cache_folder().string().ends_with("/.cache/strobe")) << cache_folder();
  }
}

TEST_F(UserFolder, OfAUserWhoIsNotListedIsInTheRoot) {
  constexpr uid_t kNotListed = 54321;
  if (geteuid() != 0 || getpwuid(kNotListed) != nullptr) GTEST_SKIP() << "cannot be such a user";
  const auto tell = [] {
    if (setuid(kNotListed) == 0) std::fputs(cache_folder().c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(tell(), testing::ExitedWithCode(0), "^/\\.cache/strobe$");
}

}  // namespace
}  // namespace strobe
