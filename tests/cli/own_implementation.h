#pragma once

#include <string>
#include <vector>

#include "cli/program.h"
#include "strobe/implementation.h"

// The program within the process of the test, whose registry has implementations of the test's own.
namespace strobe::test {

using Compute = void (*)(const Plan&, const Tensors&);

/// Puts an implementation on the CPU into the registry, unless one of that name is there already.
void add_own_implementation(const std::string& name, Compute how, const Habits& habits = {});

/// Computes as the oracle does.
void compute_by_oracle(const Plan& plan, const Tensors& tensors);

/// What the program leaves that is called with these arguments.
Outcome run_here(const std::vector<std::string>& arguments);

}  // namespace strobe::test
