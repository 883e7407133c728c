#include "strobe/error.h"

#include "core/text.h"

namespace strobe {

// Out of line, so that every module that throws or catches one shares a single type description.
Error::~Error() = default;
InvalidArgument::~InvalidArgument() = default;
Unsupported::~Unsupported() = default;
OutOfMemory::~OutOfMemory() = default;

InvalidArgument::InvalidArgument(std::string field, const std::string& what_is_wrong)
    : Error(field + " " + what_is_wrong), field_(std::move(field)) {}

Unsupported::Unsupported(const std::string& who, std::vector<std::string> missing)
    : Error(concat(who, " cannot do this: ", joined(missing, "; "))),
      missing_(std::move(missing)) {}

}  // namespace strobe
