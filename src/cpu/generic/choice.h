#pragma once

namespace strobe::cpu::STROBE_ISA {
namespace {

/// How a dtype is multiplied, and how exactly its exponentials are taken. `with_engine` of an
/// instruction set calls its argument with one of these.
template <class E, class X>
struct Choice {
  using Engine = E;
  using Exp = X;
};

}  // namespace
}  // namespace strobe::cpu::STROBE_ISA
