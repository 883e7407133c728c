#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strobe/export.h"

namespace strobe {

/// Everything the library throws derives from this. Messages are one sentence that names
/// what was wrong, what is allowed and, where there is something to do, what to do.
class STROBE_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// An argument is wrong: a size, a shape, a pointer, a name. `field()` says which one.
class STROBE_API InvalidArgument : public Error {
 public:
  InvalidArgument(std::string field, const std::string& what_is_wrong);
  ~InvalidArgument() override;
  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

/// The request is well formed, but the implementation or the machine cannot do it.
class STROBE_API Unsupported : public Error {
 public:
  Unsupported(const std::string& who, std::vector<std::string> missing);
  ~Unsupported() override;
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  std::vector<std::string> missing_;
};

/// Memory for a workspace or a tensor could not be had.
class STROBE_API OutOfMemory : public Error {
 public:
  using Error::Error;
  ~OutOfMemory() override;
};

}  // namespace strobe
