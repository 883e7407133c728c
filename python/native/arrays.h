#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "exchange.h"
#include "strobe/implementation.h"

namespace strobe::python {

namespace nb = nanobind;

/// The library that the caller's arrays are of, as strobe/_libraries.py describes one.
class Library {
 public:
  Library(nb::handle object, nb::handle q);

  /// Of an array of the type of q, if the library describes those without Python's help.
  std::optional<nb::dlpack::dltensor> describe(nb::handle array) const;
  /// What any array is to be read by: something that speaks DLPack or the buffer protocol.
  nb::object export_array(nb::handle array) const;
  /// A new array beside q, of its dtype unless another is named.
  nb::object empty(const std::vector<std::int64_t>& shape, const char* dtype) const;
  /// As the caller is to get it; None stays so.
  nb::object give(nb::handle array) const;
  /// That the caller's work on q's GPU is ordered on.
  Stream stream() const;

 private:
  nb::handle object_, q_;
  const Exchange* exchange_;
};

/// Arrays of a call as views; keeps what they look at. Lives and dies under the interpreter's lock.
class Views {
 public:
  explicit Views(const Library& library) : library_(library) {}

  /// Throws nb::type_error, naming the argument, for what is no array of a dtype that we know.
  TensorView view(std::string_view name, nb::handle array);

 private:
  const Library& library_;
  std::vector<nb::ndarray<nb::ro>> kept_{};
};

/// Somebody's memory as an array that speaks DLPack; it must outlive the array.
nb::object array_of(const TensorView& view);

/// Memory of our own as an array that speaks DLPack, for libraries whose arrays cannot be written.
nb::ndarray<nb::array_api> empty_array(const std::vector<std::int64_t>& shape, DType dtype,
                                       Device device);

}  // namespace strobe::python
