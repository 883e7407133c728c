#pragma once

#include "settings.h"
#include "strobe/implementation.h"

namespace strobe::python {

/// The problem that inputs and settings pose. Throws InvalidArgument and nb::type_error naming the
/// argument that does not fit the others; what a kernel needs of the memory is checked when it
/// runs.
Problem problem_of(const Tensors& inputs, const Settings& settings, Pass pass);

}  // namespace strobe::python
