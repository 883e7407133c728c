#include "cli/interrupt.h"

namespace strobe::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int /*signal*/) {
  interrupted = 1;
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_interrupt_);
  sigaction(SIGTERM, &action, &before_end_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_end_, nullptr);
}

bool Interrupt::requested() {
  return interrupted != 0;
}

}  // namespace strobe::cli
