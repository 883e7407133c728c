#pragma once

#include <string>
#include <vector>

#include "core/shared_object.h"

namespace strobe::cuda {

/// Looks up functions of a library and remembers those that it lacks.
struct Symbols {
  SharedObject object{};
  std::vector<std::string> missing{};
};

/// A function of a library that returns a code. Called, it throws what `fail` makes of any code but
/// success, so no code goes unnoticed; `unchecked` is for destructors and for codes that are
/// answers.
template <class Result, void (*fail)(const char* name, Result result), class... Arguments>
class Checked {
 public:
  Checked(Symbols& symbols, const char* name) : name_(name) {
    if (!symbols.object.find(name, function_)) symbols.missing.emplace_back(name);
  }

  void operator()(Arguments... arguments) const {
    const Result result = function_(arguments...);
    if (result != Result::success) [[unlikely]]
      fail(name_, result);
  }

  Result unchecked(Arguments... arguments) const { return function_(arguments...); }

 private:
  const char* name_;
  Result (*function_)(Arguments...) = nullptr;
};

}  // namespace strobe::cuda
