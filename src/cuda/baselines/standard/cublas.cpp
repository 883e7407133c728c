#include "cuda/baselines/standard/cublas.h"

#include <utility>

#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/library_files.h"
#include "strobe/error.h"

namespace strobe::cuda::cublas {
namespace {

/// The latest first, unless the driver is older and could not run it.
SharedObject find_library() {
  const int driver = driver::installed_version();
  const std::vector<std::string> names =
      driver > 0 && driver < 13000 ? std::vector<std::string>{"libcublas.so.12"}
                                   : std::vector<std::string>{"libcublas.so.13", "libcublas.so.12"};
  return SharedObject(library_files(names), "STROBE_CUBLAS");
}

}  // namespace

void fail(const char* call, abi::Status status) {
  const char* (*name_of)(abi::Status) = nullptr;
  const bool known = find_library().find("cublasGetStatusString", name_of);
  throw Error(concat(call, " failed: ", known ? name_of(status) : "status ",
                     known ? "" : concat(static_cast<int>(status))));
}

std::string Library::version() const {
  int major = 0;
  int minor = 0;
  cublasGetProperty(abi::Property::major_version, &major);
  cublasGetProperty(abi::Property::minor_version, &minor);
  return concat(major, ".", minor);
}

Found load() {
  SharedObject object = find_library();
  if (!object) {
    return {.missing = concat("there is no cuBLAS: ", object.error(),
                              "; install CUDA 12 or 13 or its package nvidia-cublas, and name "
                              "libcublas.so with STROBE_CUBLAS if it is in no usual place")};
  }
  auto library = std::make_unique<const Library>(std::move(object));
  if (!library->missing().empty()) {
    return {.missing = concat(library->path(), " is not cuBLAS 12 or later: it lacks ",
                              joined(library->missing(), ", "), "; STROBE_CUBLAS names another")};
  }
  return {.library = std::move(library)};
}

const Found& found() {
  return found_once<Library, load>();
}

const Library& library() {
  return required(found(), "cuBLAS");
}

}  // namespace strobe::cuda::cublas
