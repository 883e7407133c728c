#include "core/shared_object.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace strobe {

SharedObject::SharedObject(const std::vector<std::string>& names, const char* variable) {
  const char* const chosen = variable == nullptr ? nullptr : std::getenv(variable);
  const bool only = chosen != nullptr && *chosen != '\0';
  for (const std::string& name : only ? std::vector<std::string>{chosen} : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    error_ = dlerror();
  }
  link_map* map = nullptr;
  if (handle_ != nullptr && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0) path_ = map->l_name;
}

void* SharedObject::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::string file_of_code(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 ? "" : info.dli_fname;
}

}  // namespace strobe
