#include "cuda/kernels/flash/padding.h"

namespace strobe::cuda::flash {
namespace {

bool has_whole_rows(const Problem& problem) {
  return padded_dim(problem.dim, problem.dtype) == problem.dim &&
         padded_dim(problem.value_dim(), problem.dtype) == problem.value_dim();
}

}  // namespace

Padding::Padding(const driver::Device& device, const Problem& problem, WorkspacePlan& workspace)
    : operands_(device, problem) {
  if (has_whole_rows(problem)) return;
  const Problem whole = padded(problem);
  const auto with_dim = [&](TensorView Tensors::*tensor, bool of_keys) -> Member {
    return {tensor, operands_.plan_copy(of_keys, whole.dim, workspace)};
  };
  const auto with_value_dim = [&](TensorView Tensors::*tensor, bool of_keys) -> Member {
    return {tensor, operands_.plan_copy(of_keys, whole.value_dim(), workspace)};
  };
  read_ = {with_dim(&Tensors::q, false), with_dim(&Tensors::k, true),
           with_value_dim(&Tensors::v, true)};
  if (problem.pass == Pass::forward) {
    written_ = {with_value_dim(&Tensors::out, false)};
    return;
  }
  read_.push_back(with_value_dim(&Tensors::out, false));
  read_.push_back(with_value_dim(&Tensors::dout, false));
  written_ = {with_dim(&Tensors::dq, false), with_dim(&Tensors::dk, true),
              with_value_dim(&Tensors::dv, true)};
}

Problem Padding::padded(const Problem& problem) {
  if (has_whole_rows(problem)) return problem;
  // Copies of whole sectors: rows of 272 bytes, head dim 136, are loaded at two thirds of the speed
  // of those of 288.
  constexpr std::int64_t kSectorBytes = 32;
  const std::int64_t sector = kSectorBytes / static_cast<std::int64_t>(size_of(problem.dtype));
  const auto whole_sectors = [&](std::int64_t dim) { return (dim + sector - 1) / sector * sector; };
  Problem whole = problem;
  whole.scale = problem.softmax_scale();
  whole.dim_v = whole_sectors(problem.value_dim());
  whole.dim = whole_sectors(problem.dim);
  return whole;
}

Tensors Padding::places(const Tensors& tensors, std::byte* workspace) const {
  Tensors places = tensors;
  for (const auto* members : {&read_, &written_}) {
    for (const auto& [tensor, copy] : *members)
      places.*tensor = PaddedOperands::room(tensors.*tensor, copy, workspace);
  }
  return places;
}

void Padding::copy_in(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const {
  for (const auto& [tensor, copy] : read_) operands_.pad(tensors.*tensor, copy, workspace, stream);
}

void Padding::copy_out(const Tensors& tensors, std::byte* workspace, abi::Stream stream) const {
  for (const auto& [tensor, copy] : written_)
    operands_.cut(copy, workspace, tensors.*tensor, stream);
}

}  // namespace strobe::cuda::flash
