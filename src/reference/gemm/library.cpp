#include "reference/gemm/library.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/shared_object.h"
#include "core/text.h"
#include "strobe/error.h"

namespace strobe::reference::gemm {
namespace {

bool cpu_has_bf16_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/// oneDNN, whose row-major C functions are the same in its versions 2 and 3. The fastest on x86:
/// it generates code for the shape at hand, and uses AMX for bf16.
class OneDnn final : public Library {
 public:
  static std::unique_ptr<Library> load() {
    auto library = std::make_unique<OneDnn>();
    if (library->multiply_fp32_ == nullptr) return nullptr;
    return library;
  }

  OneDnn() {
    const SharedObject object({"libdnnl.so.3", "libdnnl.so.2"});
    const Version* (*version)() = nullptr;
    if (!object.find("dnnl_sgemm", multiply_fp32_) || !object.find("dnnl_version", version)) {
      multiply_fp32_ = nullptr;
      return;
    }
    name_ = concat("oneDNN ", version()->major, ".", version()->minor, ".", version()->patch);
    if (cpu_has_bf16_products() && object.find("dnnl_gemm_bf16bf16f32", multiply_bf16_)) {
      // It may have been told to leave the CPU's instructions alone.
      const std::uint16_t one = 0x3F80;
      float result = 0;
      if (multiply_bf16_('N', 'N', 1, 1, 1, 1, &one, 1, &one, 1, 0, &result, 1) != 0) {
        multiply_bf16_ = nullptr;
      }
    }
    // Of the OpenMP that it is linked to. A build with other threads, or none, has neither.
    if (!object.find("omp_get_max_threads", get_threads_)) return;
    object.find("omp_set_num_threads", set_threads_);
  }

  const std::string& name() const override { return name_; }
  bool multiplies_bf16() const override { return multiply_bf16_ != nullptr; }

  void multiply(const Product& p) const override {
    const char left = p.left.transposed ? 'T' : 'N';
    const char right = p.right.transposed ? 'T' : 'N';
    const float keep = p.accumulate ? 1 : 0;
    const auto call = [&]<class Element>(Multiply<Element>* function) {
      return function(left, right, p.rows, p.columns, p.depth, 1,
                      static_cast<const Element*>(p.left.data), p.left.stride,
                      static_cast<const Element*>(p.right.data), p.right.stride, keep, p.out,
                      p.out_stride);
    };
    const int status = p.bf16 ? call(multiply_bf16_) : call(multiply_fp32_);
    // The arguments are right, so it is the memory that it packs its operands into.
    if (status != 0) throw OutOfMemory(concat(name_, " could not multiply: status ", status));
  }

  // OpenMP keeps the number of threads for each thread that may start some.
  int begin_thread() const override {
    if (set_threads_ == nullptr) return 0;
    const int before = get_threads_();
    set_threads_(1);
    return before;
  }
  void end_thread(int before) const override {
    if (set_threads_ != nullptr) set_threads_(before);
  }

 private:
  struct Version {
    int major, minor, patch;
  };
  template <class Element>
  using Multiply = int(char, char, std::int64_t, std::int64_t, std::int64_t, float, const Element*,
                       std::int64_t, const Element*, std::int64_t, float, float*, std::int64_t);

  std::string name_{};
  Multiply<float>* multiply_fp32_ = nullptr;
  Multiply<std::uint16_t>* multiply_bf16_ = nullptr;
  int (*get_threads_)() = nullptr;
  void (*set_threads_)(int) = nullptr;
};

/// OpenBLAS through the C interface of BLAS.
class OpenBlas final : public Library {
 public:
  static std::unique_ptr<Library> load() {
    auto library = std::make_unique<OpenBlas>();
    if (library->multiply_fp32_ == nullptr) return nullptr;
    return library;
  }

  OpenBlas() {
    const SharedObject object({"libopenblas.so.0"});
    char* (*config)() = nullptr;
    if (!object.find("cblas_sgemm", multiply_fp32_) ||
        !object.find("openblas_get_config", config) ||
        !object.find("openblas_get_num_threads", get_threads_) ||
        !object.find("openblas_set_num_threads", set_threads_)) {
      multiply_fp32_ = nullptr;
      return;
    }
    const std::string_view words = config();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
    name_ = words.substr(0, words.find(' ', words.find(' ') + 1));
  }

  const std::string& name() const override { return name_; }
  bool multiplies_bf16() const override { return false; }

  void multiply(const Product& p) const override {
    constexpr int kRowMajor = 101;
    const auto form = [](const Operand& operand) { return operand.transposed ? 112 : 111; };
    const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
    multiply_fp32_(kRowMajor, form(p.left), form(p.right), narrow(p.rows), narrow(p.columns),
                   narrow(p.depth), 1, static_cast<const float*>(p.left.data),
                   narrow(p.left.stride), static_cast<const float*>(p.right.data),
                   narrow(p.right.stride), p.accumulate ? 1 : 0, p.out, narrow(p.out_stride));
  }

  // The number of threads is one for the process. The last call that ends gives it back.
  void begin_call() const override {
    const std::scoped_lock lock(mutex_);
    if (calls_++ > 0) return;
    threads_before_ = get_threads_();
    set_threads_(1);
  }
  void end_call() const override {
    const std::scoped_lock lock(mutex_);
    if (--calls_ == 0) set_threads_(threads_before_);
  }

 private:
  std::string name_{};
  void (*multiply_fp32_)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int) = nullptr;
  int (*get_threads_)() = nullptr;
  void (*set_threads_)(int) = nullptr;
  mutable std::mutex mutex_{};
  mutable int calls_ = 0;
  mutable int threads_before_ = 1;
};

struct Known {
  std::string_view name;  // as STROBE_GEMM_LIBRARY spells it
  const Library* (*library)();
};

template <class Kind>
const Library* loaded_once() {
  static const std::unique_ptr<Library> library = Kind::load();
  return library.get();
}

// In order of preference: OpenBLAS has kernels of its own for Arm, oneDNN plain loops.
constexpr std::array kKnown = {
#if defined(__x86_64__)
    Known{"onednn", loaded_once<OneDnn>}, Known{"openblas", loaded_once<OpenBlas>}
#else
    Known{"openblas", loaded_once<OpenBlas>}, Known{"onednn", loaded_once<OneDnn>}
#endif
};

}  // namespace

Found find_library() {
  const char* wanted = std::getenv("STROBE_GEMM_LIBRARY");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  bool known = false;
  for (const Known& candidate : kKnown) {
    if (!name.empty() && name != candidate.name) continue;
    known = true;
    if (const Library* library = candidate.library()) return {.library = library};
  }
  if (!known) {
    return {.missing =
                concat("STROBE_GEMM_LIBRARY is '", name, "', allowed is onednn or openblas")};
  }
  return {.missing = concat(name.empty() ? "a library of matrix products" : name,
                            ": install oneDNN (libdnnl-dev on Debian and Ubuntu) or OpenBLAS "
                            "(libopenblas0-pthread)")};
}

}  // namespace strobe::reference::gemm
