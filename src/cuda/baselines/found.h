#pragma once

#include <memory>
#include <string>

#include "strobe/error.h"

namespace strobe::cuda {

/// A library, or a sentence that says why there is none to use.
template <class Library>
struct Found {
  std::unique_ptr<const Library> library{};
  std::string missing{};
};

/// What `load` finds, once for the process and never destroyed.
template <class Library, Found<Library> (*load)()>
const Found<Library>& found_once() {
  static const Found<Library>& once = *new Found<Library>(load());
  return once;
}

/// Throws Unsupported with the sentence if there is none.
template <class Library>
const Library& required(const Found<Library>& found, const char* name) {
  if (!found.library) throw Unsupported(name, {found.missing});
  return *found.library;
}

}  // namespace strobe::cuda
