#include "cuda/jit/nvrtc.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/text.h"

namespace strobe::cuda::jit {

namespace {

enum class Result : int { success = 0, compilation = 6 };
using Handle = struct ProgramObject*;

[[noreturn]] void fail(const char* call, Result result) {
  throw Error(concat(call, " failed: NVRTC returns ", static_cast<int>(result)));
}

}  // namespace

struct Nvrtc::Functions {
  template <class... Arguments>
  using Call = Checked<Result, fail, Arguments...>;

  explicit Functions(SharedObject object) : symbols{std::move(object)} {}

  Symbols symbols;
  Call<int*, int*> version{symbols, "nvrtcVersion"};
  Call<int*> count_architectures{symbols, "nvrtcGetNumSupportedArchs"};
  Call<int*> architectures{symbols, "nvrtcGetSupportedArchs"};
  Call<Handle*, const char*, const char*, int, const char* const*, const char* const*> create{
      symbols, "nvrtcCreateProgram"};
  Call<Handle*> destroy{symbols, "nvrtcDestroyProgram"};
  Call<Handle, int, const char* const*> compile{symbols, "nvrtcCompileProgram"};
  Call<Handle, std::size_t*> log_size{symbols, "nvrtcGetProgramLogSize"};
  Call<Handle, char*> log{symbols, "nvrtcGetProgramLog"};
  Call<Handle, std::size_t*> cubin_size{symbols, "nvrtcGetCUBINSize"};
  Call<Handle, char*> cubin{symbols, "nvrtcGetCUBIN"};
};

Nvrtc::Nvrtc(SharedObject object)
    : functions_(std::make_unique<const Functions>(std::move(object))) {
  if (!functions_->symbols.missing.empty()) {
    trouble_ = concat(path(), " is not NVRTC 12.0 or later: it lacks ",
                      joined(functions_->symbols.missing, ", "), "; STROBE_NVRTC names another");
    return;
  }
  int major = 0;
  int minor = 0;
  functions_->version(&major, &minor);
  version_ = concat(major, ".", minor);
  if (major < 12) {
    trouble_ = concat(path(), " is NVRTC ", version_,
                      ", wanted is 12.0 or later; STROBE_NVRTC "
                      "names another");
    return;
  }
  int count = 0;
  functions_->count_architectures(&count);
  architectures_.resize(static_cast<std::size_t>(count));
  functions_->architectures(architectures_.data());
}

Nvrtc::~Nvrtc() = default;

const std::string& Nvrtc::path() const {
  return functions_->symbols.object.path();
}

bool Nvrtc::knows(int architecture) const {
  return std::find(architectures_.begin(), architectures_.end(), architecture) !=
         architectures_.end();
}

Nvrtc::Output Nvrtc::compile(const Program& program) const {
  std::vector<const char*> texts;
  std::vector<const char*> names;
  for (const auto& [name, text] : program.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  std::vector<const char*> options;
  for (const std::string& option : program.options) options.push_back(option.c_str());

  Handle created = nullptr;
  functions_->create(&created, program.text.data(), program.name.c_str(),
                     static_cast<int>(texts.size()), texts.data(), names.data());
  const auto destroy = [this](Handle handle) { functions_->destroy.unchecked(&handle); };
  const std::unique_ptr<ProgramObject, decltype(destroy)> handle(created, destroy);
  const Result result =
      functions_->compile.unchecked(handle.get(), static_cast<int>(options.size()), options.data());

  Output output;
  std::size_t size = 0;
  functions_->log_size(handle.get(), &size);
  output.log.resize(size);
  functions_->log(handle.get(), output.log.data());
  output.log.erase(std::find(output.log.begin(), output.log.end(), '\0'), output.log.end());
  if (result == Result::compilation) throw CompileError(output.log);
  if (result != Result::success) {
    throw CompileError(concat("nvrtcCompileProgram returns ", static_cast<int>(result),
                              output.log.empty() ? "" : ": ", output.log));
  }
  functions_->cubin_size(handle.get(), &size);
  output.cubin.resize(size);
  functions_->cubin(handle.get(), output.cubin.data());
  return output;
}

namespace {

std::atomic<bool> nvrtc_loaded = false;

}  // namespace

const FoundNvrtc& found_nvrtc() {
  static const FoundNvrtc& once = *new FoundNvrtc(load_nvrtc());
  nvrtc_loaded = true;
  return once;
}

bool nvrtc_is_loaded() {
  return nvrtc_loaded;
}

const Nvrtc& nvrtc() {
  const FoundNvrtc& found = found_nvrtc();
  if (!found.nvrtc) throw Unsupported("the CUDA backend", {found.missing});
  return *found.nvrtc;
}

}  // namespace strobe::cuda::jit
