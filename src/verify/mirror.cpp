#include "verify/mirror.h"

#include <array>

#include "verify/outputs.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

constexpr std::array kViews{&Tensors::q,     &Tensors::k,
                            &Tensors::v,     &Tensors::out,
                            &Tensors::lse,   &Tensors::bias,
                            &Tensors::sinks, &Tensors::alibi_slopes,
                            &Tensors::dout,  &Tensors::cu_seqlens_q,
                            &Tensors::dq,    &Tensors::cu_seqlens_k,
                            &Tensors::dk,    &Tensors::dv,
                            &Tensors::dbias, &Tensors::dsinks};

}  // namespace

DeviceBuffer::DeviceBuffer(const Accelerator& device, std::size_t bytes)
    : device_(device), bytes_(bytes), memory_(device.allocate(bytes + 2 * Buffer::kGuardBytes)) {
  device_.fill(memory_.get(), kPoison, bytes_ + 2 * Buffer::kGuardBytes);
}

bool DeviceBuffer::guards_intact() const {
  std::array<std::byte, Buffer::kGuardBytes> before{};
  std::array<std::byte, Buffer::kGuardBytes> after{};
  device_.download(before.data(), memory_.get(), before.size());
  device_.download(after.data(), data() + bytes_, after.size());
  return is_poison(before) && is_poison(after);
}

Mirror::Mirror(const Accelerator& device, const Operands& operands)
    : device_(device), operands_(operands) {
  add(operands.inputs(), false, Pass::forward);
  add(operands.outputs(Pass::forward), true, Pass::forward);
  add(operands.outputs(Pass::backward), true, Pass::backward);
}

std::size_t Mirror::bytes(const Operands& operands) {
  std::size_t sum = 0;
  for (const auto allocations :
       {operands.inputs(), operands.outputs(Pass::forward), operands.outputs(Pass::backward)}) {
    for (const Allocation& allocation : allocations) sum += allocation.buffer.whole().size();
  }
  return sum;
}

void Mirror::add(std::span<const Allocation> allocations, bool output, Pass pass) {
  for (const Allocation& allocation : allocations) {
    const auto bytes = allocation.buffer.whole();
    copies_.push_back({&allocation.buffer, device_.allocate(bytes.size()), output, pass});
    device_.upload(copies_.back().memory.get(), bytes.data(), bytes.size());
  }
}

void Mirror::move_to_device(TensorView& view) const {
  if (!view.given()) return;
  view.device = device_.device();
  const auto* data = static_cast<const std::byte*>(view.data);
  for (const Copy& copy : copies_) {
    const auto bytes = copy.host->whole();
    if (data < bytes.data() || data >= bytes.data() + bytes.size()) continue;
    view.data = copy.memory.get() + (data - bytes.data());
    return;
  }
  view.data = copies_.front().memory.get();  // a part of nothing: it has an address, no elements
}

Tensors Mirror::moved(Tensors tensors) const {
  for (const auto view : kViews) move_to_device(tensors.*view);
  return tensors;
}

void Mirror::poison_outputs(Pass pass) {
  for (const Copy& copy : copies_) {
    if (copy.output && copy.pass == pass)
      device_.fill(copy.memory.get(), kPoison, copy.host->whole().size());
  }
}

std::string Mirror::unwritten_row(Pass pass, const Tensors& given, std::uint32_t draw) const {
  const Tensors tensors = operands_.tensors(pass);
  for (const OutputField& output : kOutputs) {
    const TensorView& view = tensors.*output.view;
    if (output.pass != pass || !(given.*output.view).given()) continue;
    const Rows rows(view);
    if (rows.count() == 0) continue;
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // neighbours in draw are far apart
    const auto row =
        static_cast<std::int64_t>(draw * kSpread % static_cast<std::uint64_t>(rows.count()));
    TensorView there{.data = rows[row].data()};
    move_to_device(there);
    std::vector<std::byte> bytes(rows[row].size());
    device_.download(bytes.data(), there.data, bytes.size());
    if (first_poison(bytes, size_of(view.dtype)) >= 0) return std::string(output.name);
  }
  return "";
}

void Mirror::download() const {
  for (const Copy& copy : copies_) {
    const auto bytes = copy.host->whole();
    device_.download(bytes.data(), copy.memory.get(), bytes.size());
  }
}

}  // namespace strobe::lab
