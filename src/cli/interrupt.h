#pragma once

#include <csignal>

namespace strobe::cli {

/// While it lives, Ctrl-C and a request to end are noted instead of ending the process, so that
/// what was found can still be told. A second one ends it.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();

 private:
  struct sigaction before_interrupt_ {};
  struct sigaction before_end_ {};
};

}  // namespace strobe::cli
