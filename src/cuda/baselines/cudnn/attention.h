#pragma once

#include <mutex>
#include <optional>

#include "cuda/baselines/cudnn/attention_graph.h"
#include "cuda/baselines/cudnn/engine.h"
#include "cuda/kernels/pad_rows/pad_rows.h"
#include "strobe/implementation.h"

namespace strobe::cuda::cudnn {

/// What of a problem cuDNN of this version is not asked for.
std::vector<std::string> missing(const Problem& problem, std::size_t version);

/// One pass of a problem on one device. The engine is made for tensors that lie dense, as the
/// problem's layout says, and aligned to 16 bytes; others are copied to and from the workspace.
class Attention {
 public:
  /// Has cuDNN compile its kernel. Throws Unsupported with what it says if it has none.
  Attention(const driver::Device& device, const Problem& problem, bool deterministic);

  TuningRecord tuning() const;
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// Ordered on the stream, whose context must be current.
  void run(const Tensors& tensors, void* workspace, cuda::abi::Stream stream) const;

 private:
  /// A tensor of a call, with room in the workspace for a copy of it.
  struct Slot {
    Operand operand;
    TensorView Tensors::*view;
    Axes OperandStrides::*strides;
    bool output;
    std::size_t copy = 0;  ///< where, in the workspace
  };

  enum class Direction { in, out };

  void plan_workspace();
  Engine make_engine(Layout layout) const;
  /// The problem's layout if all tensors lie so, otherwise separate.
  Layout layout_for(const Tensors& tensors) const;
  const Engine& engine_for(Layout layout) const;
  /// Where cuDNN finds the tensor of each slot, and last the LSE: its own place or that of a copy.
  std::vector<void*> places_of(const Tensors& tensors, Layout layout, std::byte* workspace) const;
  /// Between tensors and their copies: of inputs before the execution, of outputs after it.
  void copy(const Tensors& tensors, const std::vector<void*>& places, Direction direction,
            cuda::abi::Stream stream) const;
  void execute(const Engine& engine, const std::vector<void*>& places, std::byte* workspace,
               cuda::abi::Stream stream) const;

  const driver::Device& device_;
  Problem problem_;
  bool deterministic_;
  Engine engine_;
  mutable std::once_flag separate_once_{};
  mutable std::optional<Engine> separate_{};  ///< made when packed tensors turn out not to be
  pad_rows::RowPadder padder_;
  std::vector<Slot> slots_{};
  std::size_t row_sums_ = 0, dq_sums_ = 0, lse_copy_ = 0;  ///< where, in the workspace
  std::size_t copies_begin_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace strobe::cuda::cudnn
