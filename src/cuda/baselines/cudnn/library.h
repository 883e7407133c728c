#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/baselines/cudnn/abi.h"
#include "cuda/baselines/found.h"
#include "cuda/driver/checked.h"

// NVIDIA's library of fused graphs, found at run time.
namespace strobe::cuda::cudnn {

/// Throws Error with the call, cuDNN's name for the status and what it says of the cause.
[[noreturn]] void fail(const char* call, abi::Status status);

/// What cuDNN says of its last failure in this thread, in parentheses after a space; "" if nothing.
std::string last_message();

/// Every function of it that is used, under its own name.
class Library {
  template <class... Arguments>
  using Call = Checked<abi::Status, fail, Arguments...>;

  Symbols symbols_;  // first: the calls below are looked up in it

 public:
  explicit Library(SharedObject object);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return symbols_.object.path(); }
  std::size_t version() const { return version_; }  ///< 91900 is 9.19.0
  std::string version_text() const;                 ///< "9.19.0"
  const std::string& trouble() const { return trouble_; }

  // clang-format off
  Call<abi::Handle*> cudnnCreate{symbols_, "cudnnCreate"};
  Call<abi::Handle, void*> cudnnSetStream{symbols_, "cudnnSetStream"};
  Call<abi::DescriptorKind, abi::Descriptor*> cudnnBackendCreateDescriptor{symbols_, "cudnnBackendCreateDescriptor"};
  Call<abi::Descriptor> cudnnBackendDestroyDescriptor{symbols_, "cudnnBackendDestroyDescriptor"};
  Call<abi::Descriptor, abi::Attribute, abi::ElementType, std::int64_t, const void*> cudnnBackendSetAttribute{symbols_, "cudnnBackendSetAttribute"};
  Call<abi::Descriptor, abi::Attribute, abi::ElementType, std::int64_t, std::int64_t*, void*> cudnnBackendGetAttribute{symbols_, "cudnnBackendGetAttribute"};
  Call<abi::Descriptor> cudnnBackendFinalize{symbols_, "cudnnBackendFinalize"};
  Call<abi::Handle, abi::Descriptor, abi::Descriptor> cudnnBackendExecute{symbols_, "cudnnBackendExecute"};
  // clang-format on

 private:
  std::size_t version_ = 0;
  std::string trouble_{};  ///< what keeps it from serving; "" if nothing does
};

using Found = cuda::Found<Library>;

/// Loads libcudnn.so.9, or what STROBE_CUDNN names.
Found load();

/// The same, once for the process.
const Found& found();

/// Throws Unsupported with the sentence if there is none.
const Library& library();

}  // namespace strobe::cuda::cudnn
