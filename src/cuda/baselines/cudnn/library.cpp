#include "cuda/baselines/cudnn/library.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/text.h"
#include "cuda/driver/library_files.h"
#include "strobe/error.h"

namespace strobe::cuda::cudnn {
namespace {

/// Earlier ones lack shapes of attention, or are known to compute some of them wrongly.
constexpr std::size_t kOldestVersion = 91002;

std::string text_of(std::size_t version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

SharedObject find_library() {
  return SharedObject(library_files({"libcudnn.so.9"}), "STROBE_CUDNN");
}

}  // namespace

// Also for a library that cannot serve, so these ask for the functions by name.

std::string last_message() {
  void (*get_message)(char*, std::size_t) = nullptr;
  char message[4096] = {};
  if (find_library().find("cudnnGetLastErrorString", get_message))
    get_message(message, sizeof message);
  std::replace(std::begin(message), std::end(message), '\n', ' ');
  return message[0] == '\0' ? "" : concat(" (", std::string_view(message), ")");
}

void fail(const char* call, abi::Status status) {
  const char* (*name_of)(abi::Status) = nullptr;
  const std::string name = find_library().find("cudnnGetErrorString", name_of)
                               ? std::string(name_of(status))
                               : concat("status ", static_cast<int>(status));
  throw Error(concat(call, " failed: ", name, last_message()));
}

Library::Library(SharedObject object) : symbols_{std::move(object)} {
  std::size_t (*get_version)() = nullptr;
  if (!symbols_.missing.empty() || !symbols_.object.find("cudnnGetVersion", get_version)) {
    trouble_ = concat(path(), " is not cuDNN 9; STROBE_CUDNN names another");
    return;
  }
  version_ = get_version();
  if (version_ < kOldestVersion) {
    trouble_ = concat(path(), " is cuDNN ", text_of(version_), ", wanted is ",
                      text_of(kOldestVersion), " or later; STROBE_CUDNN names another");
  }
}

std::string Library::version_text() const {
  return text_of(version_);
}

Found load() {
  SharedObject object = find_library();
  if (!object) {
    return {.missing = concat("there is no cuDNN: ", object.error(),
                              "; install cuDNN 9, or its package nvidia-cudnn, and name "
                              "libcudnn.so.9 with STROBE_CUDNN if it is in no usual place")};
  }
  auto library = std::make_unique<const Library>(std::move(object));
  if (!library->trouble().empty()) return {.missing = library->trouble()};
  return {.library = std::move(library)};
}

const Found& found() {
  return found_once<Library, load>();
}

const Library& library() {
  return required(found(), "cuDNN");
}

}  // namespace strobe::cuda::cudnn
