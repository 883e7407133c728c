#include "report/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace strobe::lab {
namespace {

TEST(Table, AlignsColumnsByWhatIsSeen) {
  Table table({{"Name"}, {"Time", Align::right}});
  table.add_row({"flash", "1.5"});
  table.add_row({"标准", "10.25"});
  table.add_row({"dv≠d", ""});
  EXPECT_EQ(table.render(),
            "Name    Time\n"
            "------------\n"
            "flash    1.5\n"
            "标准   10.25\n"
            "dv≠d\n");
}

TEST(Table, WidthsOfUnicode) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("plain"), 5u);
  EXPECT_EQ(display_width("µs"), 2u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(display_width("\U0001F3C6"), 2u);
  EXPECT_EQ(display_width("\xFF\xE6"), 2u) << "broken text counts its bytes";
}

TEST(Table, RefusesARowOfTheWrongLength) {
  Table table({{"A"}, {"B"}});
  EXPECT_THROW(table.add_row({"only one"}), std::logic_error);
}

}  // namespace
}  // namespace strobe::lab
