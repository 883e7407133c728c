#pragma once

#include <string>
#include <vector>

#include "strobe/error.h"

// The program as a function: what main() calls, and whoever has the program within a process of
// their own, with implementations of theirs in the registry.
namespace strobe::cli {

/// The arguments are none that the program takes.
class WrongUsage : public Error {
 public:
  using Error::Error;
};

/// How the program was called.
struct Invocation {
  std::string program = "strobe";  ///< as users type it, which records tell
  std::vector<std::string> arguments{};
};

/// Does what is asked for and returns the exit status. Throws WrongUsage, and whatever else stops
/// it.
int run(const Invocation& invocation);

/// The same for a terminal: what stops it is a sentence on the standard error, and a status.
int run_and_report(const Invocation& invocation);

}  // namespace strobe::cli
