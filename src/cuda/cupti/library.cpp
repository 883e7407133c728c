#include "cuda/cupti/library.h"

#include <filesystem>

#include "core/text.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/library_files.h"

namespace strobe::cuda::cupti {
namespace {

/// The latest first, unless the driver is older and would not have it.
SharedObject find_library() {
  const int driver = driver::installed_version();
  const std::vector<std::string> names =
      driver > 0 && driver < 13000 ? std::vector<std::string>{"libcupti.so.12"}
                                   : std::vector<std::string>{"libcupti.so.13", "libcupti.so.12"};
  return SharedObject(library_files(names), "STROBE_CUPTI");
}

std::string name_of(abi::Result result) {
  abi::Result (*function)(abi::Result, const char**) = nullptr;
  const char* name = nullptr;
  const bool known = find_library().find("cuptiGetResultString", function) &&
                     function(result, &name) == abi::Result::success && name != nullptr;
  return known ? name : concat("error ", static_cast<int>(result));
}

const char* advice(abi::Result result) {
  switch (result) {
    case abi::Result::insufficient_privileges:
    case abi::Result::virtualized_device_insufficient_privileges:
      return "this user may not read the GPU's counters: run as root, in a container with the "
             "capability SYS_ADMIN as well, or let the administrator load the driver with "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case abi::Result::multiple_subscribers_not_supported:
    case abi::Result::old_profiler_api_initialized:
    case abi::Result::not_compatible:
    case abi::Result::hardware_busy:
      return "another profiler is at work on the GPU: end it, or run without nsys or ncu around "
             "this program";
    case abi::Result::virtualized_device_not_supported:
      return "virtual GPUs cannot be profiled unless the host allows it: ask for a whole GPU";
    case abi::Result::not_initialized:
      return "libnvperf_host.so and libnvperf_target.so must lie beside libcupti: install all of "
             "the toolkit's CUPTI or its package nvidia-cuda-cupti";
    default:
      return "look whether this CUPTI is of the same CUDA version as the driver; STROBE_CUPTI "
             "names another";
  }
}

/// Throws if it lacks something.
template <class Part>
void require(const Part& part, const SharedObject& object, const char* version) {
  if (part.missing().empty()) return;
  throw Refused(concat(object.path(), " is not CUPTI ", version, " or later: it lacks ",
                       joined(part.missing(), ", "), "; STROBE_CUPTI names another"));
}

/// What one attempt to load them came to.
struct Loaded {
  std::unique_ptr<const Library> library{};
  std::unique_ptr<const Profiler> profiler{};
  std::string missing{};
};

Loaded load() {
  const SharedObject object = find_library();
  if (!object) {
    return {.missing = concat("there is no CUPTI, NVIDIA's profiling library: ", object.error(),
                              "; install CUDA 12 or 13 or its package nvidia-cuda-cupti, and name "
                              "libcupti.so with STROBE_CUPTI if it is in no usual place")};
  }
  load_beside(object, "libnvperf_host.so");
  load_beside(object, "libnvperf_target.so");
  return {.library = std::make_unique<const Library>(object),
          .profiler = std::make_unique<const Profiler>(object)};
}

const Loaded& loaded() {
  static const Loaded& once = *new Loaded(load());
  if (!once.library) throw Refused(once.missing);
  return once;
}

}  // namespace

void fail(const char* call, abi::Result result) {
  throw Refused(concat(call, " returns ", name_of(result), "; ", advice(result)));
}

std::string Library::version() const {
  std::uint32_t version = 0;
  cuptiGetVersion(&version);
  if (version < 10000) return concat("API ", version);
  return concat(version / 10000, ".", version % 10000 / 100);
}

const Library& library() {
  const Library& library = *loaded().library;
  require(library, library.object(), "12.0");
  return library;
}

const Profiler& profiler() {
  require(*loaded().profiler, loaded().library->object(), "12.6");
  return *loaded().profiler;
}

void load_beside(const SharedObject& cupti, const char* name) {
  const std::filesystem::path path = std::filesystem::path(cupti.path()).parent_path() / name;
  std::error_code none;
  if (std::filesystem::exists(path, none)) SharedObject({path});  // and it stays loaded
}

}  // namespace strobe::cuda::cupti
