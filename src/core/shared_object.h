#pragma once

#include <string>
#include <vector>

namespace strobe {

/// A shared library that is loaded at run time, or nothing. It stays loaded: threads of its own may
/// still run its code.
class SharedObject {
 public:
  SharedObject() = default;

  /// The first of these names or paths that can be loaded. The environment variable `variable`, if
  /// there is one and it is set, is the only one that is tried.
  explicit SharedObject(const std::vector<std::string>& names, const char* variable = nullptr);

  explicit operator bool() const { return handle_ != nullptr; }

  /// The file that was loaded; "" if none was.
  const std::string& path() const { return path_; }

  /// What the system says against the last name that was tried.
  const std::string& error() const { return error_; }

  /// Sets `function` to the symbol, null if there is none.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string path_{};
  std::string error_{};
};

/// The file that the code at this address was loaded from.
std::string file_of_code(const void* address);

}  // namespace strobe
