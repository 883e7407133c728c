#include "cuda/baselines/cudnn/descriptor.h"

#include "core/text.h"

namespace strobe::cuda::cudnn {
namespace {

/// An attribute is a number in cudnn_graph.h.
void check(const char* call, abi::Attribute attribute, abi::Status status) {
  if (status == abi::Status::success) return;
  fail(concat(call, " of attribute ", static_cast<int>(attribute)).c_str(), status);
}

}  // namespace

void Descriptor::set(abi::Attribute attribute, abi::ElementType type, std::size_t count,
                     const void* elements) const {
  check("cudnnBackendSetAttribute", attribute,
        library_->cudnnBackendSetAttribute.unchecked(handle_, attribute, type,
                                                     static_cast<std::int64_t>(count), elements));
}

std::int64_t Descriptor::get(abi::Attribute attribute, abi::ElementType type, std::size_t room,
                             void* elements) const {
  std::int64_t count = 0;
  check("cudnnBackendGetAttribute", attribute,
        library_->cudnnBackendGetAttribute.unchecked(
            handle_, attribute, type, static_cast<std::int64_t>(room), &count, elements));
  return count;
}

std::int64_t Descriptor::number(abi::Attribute attribute) const {
  std::int64_t value = 0;
  get(attribute, abi::ElementType::int64, 1, &value);
  return value;
}

std::vector<Descriptor> Descriptor::descriptors(abi::Attribute attribute,
                                                abi::DescriptorKind kind) const {
  const std::int64_t count = get(attribute, abi::ElementType::descriptor, 0, nullptr);
  // cuDNN fills objects that it is given.
  std::vector<Descriptor> all;
  std::vector<abi::Descriptor> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    handles.push_back(all.emplace_back(*library_, kind).get());
  }
  const std::int64_t filled =
      get(attribute, abi::ElementType::descriptor, handles.size(), handles.data());
  while (static_cast<std::int64_t>(all.size()) > filled) all.pop_back();
  return all;
}

}  // namespace strobe::cuda::cudnn
