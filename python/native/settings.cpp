#include "settings.h"

#include <nanobind/stl/string.h>

#include <limits>
#include <string_view>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe::python {
namespace {

[[noreturn]] void throw_type(std::string_view name, nb::handle value, std::string_view wanted) {
  throw nb::type_error(
      concat(name, " is of type ", nb::inst_name(value).c_str(), ", ", wanted, " is needed")
          .c_str());
}

/// Of the error that a conversion left, nothing remains.
template <class Number>
Number checked(Number number, std::string_view name, nb::handle value, std::string_view wanted) {
  if (PyErr_Occurred() == nullptr) return number;
  const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  PyErr_Clear();
  if (!too_large) throw_type(name, value, wanted);
  throw InvalidArgument(std::string(name), concat("is out of range, ", wanted, " is needed"));
}

// One for each type of a setting. `into` has the type, so that the table below need not say it.

void read(std::string_view name, nb::handle value, bool& into) {
  if (!PyBool_Check(value.ptr())) throw_type(name, value, "a bool");
  into = value.ptr() == Py_True;
}

void read(std::string_view name, nb::handle value, double& into) {
  into = checked(PyFloat_AsDouble(value.ptr()), name, value, "a number");
}

void read(std::string_view name, nb::handle value, std::int64_t& into) {
  if (!PyIndex_Check(value.ptr())) throw_type(name, value, "an integer");
  into =
      checked<std::int64_t>(PyLong_AsLongLong(value.ptr()), name, value, "an integer of 64 bits");
}

void read(std::string_view name, nb::handle value, std::uint64_t& into) {
  if (!PyIndex_Check(value.ptr())) throw_type(name, value, "an integer");
  const auto integer = nb::steal(PyNumber_Index(value.ptr()));
  into = checked<std::uint64_t>(integer.is_valid() ? PyLong_AsUnsignedLongLong(integer.ptr()) : 0,
                                name, value, "an integer from 0 to 2^64 - 1");
}

void read(std::string_view name, nb::handle value, int& into) {
  std::int64_t wide = 0;
  read(name, value, wide);
  if (wide < 0 || wide > std::numeric_limits<int>::max())
    throw InvalidArgument(std::string(name), concat("is ", wide, ", allowed is 0 or more"));
  into = static_cast<int>(wide);
}

void read(std::string_view name, nb::handle value, std::string& into) {
  if (!PyUnicode_Check(value.ptr())) throw_type(name, value, "a str");
  into = nb::cast<std::string>(value);
}

/// (left, right), of which None is no limit, as -1 is.
void read(std::string_view name, nb::handle value, Window& into) {
  constexpr const char* kWanted = "a pair (left, right)";
  if (!PySequence_Check(value.ptr()) || PyUnicode_Check(value.ptr()))
    throw_type(name, value, kWanted);
  if (nb::len(value) != 2)
    throw InvalidArgument(std::string(name),
                          concat("has ", nb::len(value), " numbers, ", kWanted, " is needed"));
  const nb::object left = value[0], right = value[1];
  if (!left.is_none()) read(name, left, into.left);
  if (!right.is_none()) read(name, right, into.right);
}

template <class T>
void read(std::string_view name, nb::handle value, std::optional<T>& into) {
  read(name, value, into.emplace());
}

struct Setting {
  std::string_view name;
  void (*read)(std::string_view name, nb::handle value, Settings& settings);
};

template <auto member>
constexpr Setting setting(std::string_view name) {
  return {name, [](std::string_view field, nb::handle value, Settings& settings) {
            read(field, value, settings.*member);
          }};
}

constexpr Setting kSettings[] = {
    setting<&Settings::causal>("causal"),
    setting<&Settings::window>("window"),
    setting<&Settings::scale>("scale"),
    setting<&Settings::softcap>("softcap"),
    setting<&Settings::dropout>("dropout"),
    setting<&Settings::dropout_seed>("dropout_seed"),
    setting<&Settings::max_seqlen_q>("max_seqlen_q"),
    setting<&Settings::max_seqlen_k>("max_seqlen_k"),
    setting<&Settings::implementation>("implementation"),
    setting<&Settings::threads>("threads"),
    setting<&Settings::deterministic>("deterministic"),
    setting<&Settings::tf32>("tf32"),
    setting<&Settings::return_lse>("return_lse"),
    setting<&Settings::bias_gradient>("bias_gradient"),
    setting<&Settings::sinks_gradient>("sinks_gradient"),
};

}  // namespace

Settings read_settings(const nb::dict& arguments) {
  Settings settings;
  for (const auto& [key, value] : arguments) {
    const std::string_view name = nb::cast<const char*>(key);
    const auto* known = std::begin(kSettings);
    while (known != std::end(kSettings) && known->name != name) ++known;
    if (known == std::end(kSettings))
      throw nb::type_error(concat("there is no argument ", name).c_str());
    if (!value.is_none()) known->read(name, value, settings);
  }
  return settings;
}

}  // namespace strobe::python
