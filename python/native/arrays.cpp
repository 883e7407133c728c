#include "arrays.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/text.h"
#include "strobe/error.h"
#include "workspaces.h"

namespace strobe::python {
namespace {

constexpr std::pair<nb::dlpack::dtype, DType> kTypes[] = {
    {{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 32, 1}, DType::fp32},
    {{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1}, DType::fp16},
    {{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1}, DType::bf16},
    {{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int), 32, 1}, DType::int32},
    {{static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1}, DType::uint8},
};

DType dtype_of(std::string_view name, nb::dlpack::dtype dtype) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == dtype) return ours;
  }
  constexpr const char* kKinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const char* const kind = dtype.code < std::size(kKinds) ? kKinds[dtype.code] : "unknown";
  throw nb::type_error(concat(name, " is of ", kind, static_cast<int>(dtype.bits),
                              "; there are float32, float16, bfloat16 and, for offsets, int32")
                           .c_str());
}

nb::dlpack::dtype dtype_of(DType dtype) {
  return std::find_if(std::begin(kTypes), std::end(kTypes),
                      [=](const auto& pair) { return pair.second == dtype; })
      ->first;
}

int device_type_of(Device device) {
  return device.kind == Device::Kind::cpu ? nb::device::cpu::value : nb::device::cuda::value;
}

Device device_of(std::string_view name, nb::dlpack::device device) {
  switch (device.device_type) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value:
      return {};
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value:
      return {Device::Kind::cuda, device.device_id};
    default:
      throw InvalidArgument(std::string(name), "is on a device that is neither the CPU nor CUDA's");
  }
}

TensorView view_of(std::string_view name, const nb::dlpack::dltensor& tensor) {
  if (tensor.ndim < 1 || tensor.ndim > TensorView::kMaxRank) {
    throw InvalidArgument(std::string(name), concat("has ", tensor.ndim, " axes, allowed is 1 to ",
                                                    TensorView::kMaxRank));
  }
  TensorView view{.dtype = dtype_of(name, tensor.dtype),
                  .device = device_of(name, tensor.device),
                  .rank = tensor.ndim};
  if (tensor.data != nullptr) view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  std::copy_n(tensor.shape, tensor.ndim, view.shape.begin());
  std::copy_n(tensor.strides, tensor.ndim, view.strides.begin());
  // Of what has no elements they may be anything, and NumPy's are 0.
  if (view.elements() == 0) view.strides[view.rank - 1] = 1;
  return view;
}

/// NumPy has no bf16 of its own and cannot export that of others, so its library exports the bits
/// as uint16, in an array that is not the caller's.
bool is_bits(nb::handle array, nb::handle exported, nb::dlpack::dtype dtype) {
  return !exported.is(array) && PyCapsule_CheckExact(exported.ptr()) == 0 &&
         dtype == nb::dtype<std::uint16_t>();
}

/// Looks at memory of the array.
nb::dlpack::dltensor description_of(const nb::ndarray<nb::ro>& array) {
  return {.data = const_cast<void*>(array.data()),
          .device = {array.device_type(), array.device_id()},
          .ndim = static_cast<std::int32_t>(array.ndim()),
          .dtype = array.dtype(),
          .shape = const_cast<std::int64_t*>(array.shape_ptr()),
          .strides = const_cast<std::int64_t*>(array.stride_ptr()),
          .byte_offset = 0};
}

}  // namespace

Library::Library(nb::handle object, nb::handle q)
    : object_(object), q_(q), exchange_(exchange_in(nb::object(object.attr("exchange")))) {}

std::optional<nb::dlpack::dltensor> Library::describe(nb::handle array) const {
  if (exchange_ == nullptr || !array.type().is(q_.type())) return std::nullopt;
  nb::dlpack::dltensor tensor{};
  if (exchange_->tensor_from_object(array.ptr(), &tensor) != 0) throw nb::python_error();
  if (tensor.strides == nullptr) return std::nullopt;  // before DLPack 1.2, of what is contiguous
  return tensor;
}

nb::object Library::export_array(nb::handle array) const {
  return object_.attr("export")(array);
}

nb::object Library::empty(const std::vector<std::int64_t>& shape, const char* dtype) const {
  nb::list sizes;
  for (const std::int64_t size : shape) sizes.append(size);
  return object_.attr("empty")(nb::tuple(sizes), dtype, q_);
}

nb::object Library::give(nb::handle array) const {
  if (array.is_none()) return nb::none();
  return object_.attr("give")(array);
}

Stream Library::stream() const {
  return reinterpret_cast<Stream>(nb::cast<std::uintptr_t>(object_.attr("stream")(q_)));
}

TensorView Views::view(std::string_view name, nb::handle array) try {
  if (const auto tensor = library_.describe(array)) return view_of(name, *tensor);
  const nb::object exported = library_.export_array(array);
  nb::ndarray<nb::ro> imported;
  if (!nb::try_cast(exported, imported, false)) {
    throw nb::type_error(concat(name, " is of type ", nb::inst_name(array).c_str(),
                                " and cannot be read as an array: by DLPack, or as a buffer of "
                                "numbers in this machine's order")
                             .c_str());
  }
  nb::dlpack::dltensor tensor = description_of(imported);
  if (is_bits(array, exported, tensor.dtype)) tensor.dtype = dtype_of(DType::bf16);
  kept_.push_back(std::move(imported));
  return view_of(name, tensor);
} catch (const nb::python_error& error) {
  if (error.matches(PyExc_NotImplementedError)) throw;  // there is no such device here
  throw nb::type_error(
      concat(name, " cannot be read as an array: ", nb::str(error.value()).c_str()).c_str());
}

nb::object array_of(const TensorView& view) {
  const std::vector<std::size_t> sizes(view.shape.begin(), view.shape.begin() + view.rank);
  const nb::ndarray<nb::array_api> array(view.data, sizes.size(), sizes.data(), nb::handle(),
                                         view.strides.data(), dtype_of(view.dtype),
                                         device_type_of(view.device), view.device.index);
  return nb::cast(array, nb::rv_policy::reference);
}

nb::ndarray<nb::array_api> empty_array(const std::vector<std::int64_t>& shape, DType dtype,
                                       Device device) {
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  auto memory = std::make_unique<Memory>(allocate(bytes, device));
  void* const data = memory->get();
  const nb::capsule owner(memory.release(),
                          [](void* held) noexcept { delete static_cast<Memory*>(held); });
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return {data,    sizes.size(),    sizes.data(),           owner,
          nullptr, dtype_of(dtype), device_type_of(device), device.index};
}

}  // namespace strobe::python
