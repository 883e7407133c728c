#include "cuda/jit/sources.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace strobe::cuda::jit {
namespace {

TEST(Sources, AreEmbeddedUnderTheirPath) {
  const auto text = embedded_source("kernels/pad_rows/pad_rows.cu");
  EXPECT_NE(text.find("#include \"config.cuh\""), std::string_view::npos);
  EXPECT_EQ(text.data()[text.size()], '\0');
  EXPECT_THROW(embedded_source("kernels/none.cu"), std::logic_error);
}

TEST(Sources, IncludedHeadersAreFoundThroughOthers) {
  const Headers extra{{"a.cuh", "  #  include \"b.cuh\"\n#include \"a.cuh\"\n"},
                      {"b.cuh", "int b;  // #include \"c.cuh\"\n"},
                      {"c.cuh", "int c;"}};
  const Headers found = included_headers(
      "#include <cstdint>\n#include \"a.cuh\"\n#include \"nowhere.cuh\"\n"
      "#include \"kernels/pad_rows/params.cuh\"",
      extra);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found.contains("a.cuh"));
  EXPECT_TRUE(found.contains("b.cuh"));
  EXPECT_TRUE(found.contains("kernels/pad_rows/params.cuh"));
}

}  // namespace
}  // namespace strobe::cuda::jit
