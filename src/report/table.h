#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strobe::lab {

/// Columns a text takes on a terminal: code points, with wide ones (CJK, emoji) as two and
/// combining marks as none.
std::size_t display_width(std::string_view utf8);

enum class Align : unsigned char { left, right };
inline constexpr Align kRight = Align::right;  // numbers

/// A table of text in aligned columns, for people.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One text for each column.
  void add_row(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  /// Titles, a rule, then the rows; every line ends with a newline and has no trailing space.
  std::string render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strobe::lab
