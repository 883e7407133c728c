#include "cuda/jit/resources.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/text.h"

namespace strobe::cuda::jit {
namespace {

/// The number before `words`, 0 if they are not there: "32 registers".
int number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos) return 0;
  std::size_t start = at;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  int number = 0;
  std::from_chars(line.data() + start, line.data() + at, number);
  return number;
}

}  // namespace

// For example:
//   ptxas info    : Compiling entry function 'pad_rows' for 'sm_90a'
//   ptxas info    : Function properties for pad_rows
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem
// Before all of it, where registers do not suffice:
//   ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized
//                   due to insufficient register resources for the function 'pad_rows'
std::vector<Resources> parse_assembler_log(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  constexpr std::string_view kSerialized = " instructions are serialized";
  std::vector<Resources> all;
  bool serialized = false;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (const std::size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kEntry.size());
      all.push_back({.entry = std::string(name.substr(0, name.find('\'')))});
    }
    serialized = serialized || line.find(kSerialized) != std::string_view::npos;
    if (all.empty()) continue;
    Resources& entry = all.back();
    // Functions that were not inlined have properties of their own; what they spill counts as well.
    entry.stack_bytes += number_before(line, " bytes stack frame");
    entry.spill_store_bytes += number_before(line, " bytes spill stores");
    entry.spill_load_bytes += number_before(line, " bytes spill loads");
    entry.registers = std::max(entry.registers, number_before(line, " registers"));
    entry.shared_bytes = std::max(entry.shared_bytes, number_before(line, " bytes smem"));
  }
  for (Resources& entry : all) entry.serialized = serialized;
  return all;
}

std::string write_resources(const std::vector<Resources>& all) {
  std::string text;
  for (const Resources& r : all) {
    text += concat(r.entry, " ", r.registers, " ", r.spill_store_bytes, " ", r.spill_load_bytes,
                   " ", r.stack_bytes, " ", r.shared_bytes, " ", r.serialized ? 1 : 0, "\n");
  }
  return text;
}

std::vector<Resources> read_resources(const std::string& text) {
  std::istringstream stream(text);
  std::vector<Resources> all;
  for (Resources r; stream >> r.entry >> r.registers >> r.spill_store_bytes >> r.spill_load_bytes >>
                    r.stack_bytes >> r.shared_bytes >> r.serialized;) {
    all.push_back(r);
  }
  return all;
}

}  // namespace strobe::cuda::jit
