#include "report/table.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <utility>

namespace strobe::lab {
namespace {

using PointRange = std::pair<std::uint32_t, std::uint32_t>;

bool within(std::uint32_t point, std::initializer_list<PointRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [point](const PointRange& range) {
    return point >= range.first && point <= range.second;
  });
}

std::size_t width_of(std::uint32_t point) {
  if (within(point, {{0x0300, 0x036F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}})) return 0;
  const bool wide = within(point, {{0x1100, 0x115F},
                                   {0x2E80, 0xA4CF},
                                   {0xAC00, 0xD7A3},
                                   {0xF900, 0xFAFF},
                                   {0xFE30, 0xFE6F},
                                   {0xFF00, 0xFF60},
                                   {0x1F300, 0x1FAFF},
                                   {0x20000, 0x3FFFD}});
  return wide ? 2 : 1;
}

/// The code point at `at`, which moves past it. A byte that starts none counts as one.
std::uint32_t next_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  std::uint32_t point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  std::size_t used = 1;
  for (; used < length && at + used < text.size() && (byte(at + used) & 0xC0) == 0x80; ++used) {
    point = point << 6 | (byte(at + used) & 0x3Fu);
  }
  at += used;
  return point;
}

void append_cell(std::string& line, std::string_view cell, std::size_t width, Align align) {
  const std::string padding(width - display_width(cell), ' ');
  if (align == Align::right) line += padding;
  line += cell;
  if (align == Align::left) line += padding;
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < utf8.size();) width += width_of(next_point(utf8, at));
  return width;
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a table row needs every column");
  rows_.push_back(std::move(cells));
}

std::string Table::render() const {
  constexpr std::string_view kGap = "  ";
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);

  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(titles[i]);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
    total += width + (i > 0 ? kGap.size() : 0);
  }

  std::string text;
  const auto append_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += kGap;
      append_cell(line, cells[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append_line(titles);
  text += std::string(total, '-') + '\n';
  for (const auto& row : rows_) append_line(row);
  return text;
}

}  // namespace strobe::lab
