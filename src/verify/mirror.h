#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strobe/accelerator.h"
#include "verify/operands.h"

namespace strobe::lab {

/// Memory of a device with a guard zone before and after, everything poisoned, as Buffer is on the
/// host.
class DeviceBuffer {
 public:
  DeviceBuffer(const Accelerator& device, std::size_t bytes);

  std::byte* data() const { return memory_.get() + Buffer::kGuardBytes; }
  bool guards_intact() const;

 private:
  const Accelerator& device_;
  std::size_t bytes_;
  std::shared_ptr<std::byte> memory_;
};

/// The operands of a case in the memory of a device, laid out as on the host: strides, padding and
/// guard zones are the same, so that what a kernel does there can be judged here.
class Mirror {
 public:
  /// Copies everything as it is. The operands must outlive it.
  Mirror(const Accelerator& device, const Operands& operands);

  /// What one takes of the device's memory.
  static std::size_t bytes(const Operands& operands);

  /// Views of the operands, in the device's memory.
  Tensors moved(Tensors tensors) const;

  void poison_outputs(Pass pass);

  /// Looks at one row of every output of this pass that a run was given, another with every draw:
  /// the name of one that still holds poison, "" if none does.
  std::string unwritten_row(Pass pass, const Tensors& given, std::uint32_t draw) const;

  /// Brings everything back to the operands.
  void download() const;

 private:
  struct Copy {
    const Buffer* host;
    std::shared_ptr<std::byte> memory;
    bool output;
    Pass pass;
  };

  void add(std::span<const Allocation> allocations, bool output, Pass pass);
  void move_to_device(TensorView& view) const;

  const Accelerator& device_;
  const Operands& operands_;
  std::vector<Copy> copies_{};
};

}  // namespace strobe::lab
