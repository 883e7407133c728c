#include "experiment/cache_simulator.h"

#include <algorithm>

namespace strobe::lab {

CacheSimulator::CacheSimulator(std::int64_t bytes)
    : room_(static_cast<std::size_t>(std::max<std::int64_t>(bytes / kLineBytes, 1))) {}

CacheSimulator::Line& CacheSimulator::use(std::int64_t number, bool& fetched) {
  const auto found = places_.find(number);
  fetched = found == places_.end();
  if (!fetched) {
    lines_.splice(lines_.begin(), lines_, found->second);
    return lines_.front();
  }
  if (lines_.size() == room_) {
    if (lines_.back().changed) ++lines_written_;
    places_.erase(lines_.back().number);
    lines_.pop_back();
  }
  lines_.push_front({.number = number});
  places_[number] = lines_.begin();
  return lines_.front();
}

void CacheSimulator::read(std::int64_t address, std::int64_t bytes) {
  for (std::int64_t line = address / kLineBytes; line * kLineBytes < address + bytes; ++line) {
    bool fetched = false;
    use(line, fetched);
    if (fetched) ++lines_read_;
  }
}

void CacheSimulator::write(std::int64_t address, std::int64_t bytes) {
  for (std::int64_t line = address / kLineBytes; line * kLineBytes < address + bytes; ++line) {
    bool fetched = false;
    use(line, fetched).changed = true;
  }
}

Traffic CacheSimulator::traffic() const {
  const auto waiting =
      std::count_if(lines_.begin(), lines_.end(), [](const Line& line) { return line.changed; });
  return {.read = static_cast<double>(lines_read_ * kLineBytes),
          .written = static_cast<double>((lines_written_ + waiting) * kLineBytes)};
}

}  // namespace strobe::lab
