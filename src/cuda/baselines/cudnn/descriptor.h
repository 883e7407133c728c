#pragma once

#include <span>
#include <utility>
#include <vector>

#include "cuda/baselines/cudnn/library.h"

namespace strobe::cuda::cudnn {

// How cuDNN calls the type of an attribute's elements.
template <class Element>
inline constexpr abi::ElementType kElementType = abi::ElementType::descriptor;
template <>
inline constexpr auto kElementType<std::int64_t> = abi::ElementType::int64;
template <>
inline constexpr auto kElementType<bool> = abi::ElementType::boolean;
template <>
inline constexpr auto kElementType<char> = abi::ElementType::character;
template <>
inline constexpr auto kElementType<void*> = abi::ElementType::pointer;
template <>
inline constexpr auto kElementType<abi::Handle> = abi::ElementType::handle;
template <>
inline constexpr auto kElementType<abi::DataType> = abi::ElementType::data_type;
template <>
inline constexpr auto kElementType<abi::PointwiseMode> = abi::ElementType::pointwise_mode;
template <>
inline constexpr auto kElementType<abi::ReductionOperator> = abi::ElementType::reduction_operator;
template <>
inline constexpr auto kElementType<abi::HeuristicsMode> = abi::ElementType::heuristics_mode;

/// An object of cuDNN's: it is given attributes and then finalized. What it refers to must outlive
/// it.
class Descriptor {
 public:
  Descriptor(const Library& library, abi::DescriptorKind kind) : library_(&library) {
    library.cudnnBackendCreateDescriptor(kind, &handle_);
  }
  Descriptor(Descriptor&& other) noexcept
      : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Descriptor() {
    if (handle_ != nullptr) library_->cudnnBackendDestroyDescriptor.unchecked(handle_);
  }

  abi::Descriptor get() const { return handle_; }

  template <class Element>
  void set(abi::Attribute attribute, std::span<const Element> elements) const {
    set(attribute, kElementType<Element>, elements.size(), elements.data());
  }
  template <class Element>
  void set(abi::Attribute attribute, const Element& element) const {
    set(attribute, std::span<const Element>(&element, 1));
  }
  void set(abi::Attribute attribute, const Descriptor& other) const {
    set(attribute, other.handle_);
  }

  std::int64_t number(abi::Attribute attribute) const;
  std::vector<Descriptor> descriptors(abi::Attribute attribute, abi::DescriptorKind kind) const;

  void finalize() const { library_->cudnnBackendFinalize(handle_); }

 private:
  void set(abi::Attribute attribute, abi::ElementType type, std::size_t count,
           const void* elements) const;
  /// How many elements there are, of which at most `room` are copied.
  std::int64_t get(abi::Attribute attribute, abi::ElementType type, std::size_t room,
                   void* elements) const;

  const Library* library_;
  abi::Descriptor handle_ = nullptr;
};

}  // namespace strobe::cuda::cudnn
