#include "cli/product_beside.h"

#include <fmt/format.h>

#include "strobe/error.h"
#include "verify/execution.h"

namespace strobe::cli {

ProductBeside::ProductBeside(std::int64_t size, std::span<const lab::Entrant> entrants)
    : size_(size) {
  if (size_ == 0 || entrants.empty()) return;
  options_ = entrants.front().options;
  device_ = lab::device_of(*entrants.front().implementation, options_);
  for (const auto& [implementation, options] : entrants) {
    if (lab::device_of(*implementation, options) == device_) continue;
    throw InvalidArgument("--product",
                          "is timed on one device, and what is compared runs on several; name "
                          "implementations of one of them with --impl");
  }
}

const lab::ProductTrial* ProductBeside::of(DType dtype) {
  if (size_ == 0) return nullptr;
  if (trial_ && trial_->dtype() == dtype) return &*trial_;
  trial_.reset();  // before the next: there may be no room for both
  reason_.clear();
  try {
    return &trial_.emplace(device_, size_, dtype, options_);
  } catch (const Unsupported& error) {
    reason_ = error.what();
  } catch (const OutOfMemory& error) {
    reason_ = error.what();
  }
  return nullptr;
}

std::string ProductBeside::name() const {
  return fmt::format("product of {0}x{0}", size_);
}

}  // namespace strobe::cli
