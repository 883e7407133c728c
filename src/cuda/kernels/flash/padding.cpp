#include "cuda/kernels/flash/padding.h"

namespace strobe::cuda::flash {

bool Padding::has_copies(const Problem& problem) {
  return padded_dim(problem.dim, problem.dtype) != problem.dim ||
         padded_dim(problem.value_dim(), problem.dtype) != problem.value_dim();
}

Padding::Padding(const driver::Device& device, const Problem& problem, WorkspacePlan& workspace)
    : operands_(device, problem) {
  if (!has_copies(problem)) return;
  const auto add = [&](TensorView Tensors::*tensor, bool of_keys, std::int64_t dim) {
    members_.push_back(
        {tensor, operands_.plan_copy(of_keys, head_stride(dim, problem.dtype), workspace)});
  };
  add(&Tensors::q, false, problem.dim);
  add(&Tensors::k, true, problem.dim);
  add(&Tensors::v, true, problem.value_dim());
  if (problem.pass == Pass::backward) add(&Tensors::dout, false, problem.value_dim());
}

std::int64_t Padding::head_stride(std::int64_t dim, DType dtype) {
  // Whole sectors: rows of 272 bytes, head dim 136, are loaded at two thirds of the speed of those
  // of 288.
  constexpr std::int64_t kSectorBytes = 32;
  const std::int64_t sector = kSectorBytes / static_cast<std::int64_t>(size_of(dtype));
  return (dim + sector - 1) / sector * sector;
}

Tensors Padding::places(const Tensors& tensors, std::byte* workspace) const {
  Tensors places = tensors;
  for (const auto& [tensor, copy] : members_)
    places.*tensor = PaddedOperands::room(tensors.*tensor, copy, workspace);
  return places;
}

void Padding::copy(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const {
  for (const auto& [tensor, copy] : members_)
    operands_.pad(tensors.*tensor, copy, workspace, stream);
}

}  // namespace strobe::cuda::flash
