#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/export.h"
#include "strobe/problem.h"
#include "strobe/tensor.h"

namespace strobe {

/// The operands of one call. Dense tensors are [batch, seqlen, heads, dim], variable-length ones
/// [total, heads, dim]; inputs are never written. What the problem does not use stays not given.
struct Tensors {
  TensorView q{}, k{}, v{};
  TensorView out{};    ///< output of forward, input of backward
  TensorView lse{};    ///< fp32 [batch, heads, seqlen_q] or [heads, total_q]; optional in forward
  TensorView bias{};   ///< [batch|1, heads|1, seqlen_q|1, seqlen_k]
  TensorView sinks{};  ///< fp32 [heads]
  TensorView alibi_slopes{};  ///< fp32 [heads] or [batch, heads]
  TensorView cu_seqlens_q{};  ///< int32 [batch + 1], variable length only; rows past the last
                              ///< offset belong to no sequence and hold nothing of meaning
  TensorView cu_seqlens_k{};

  TensorView dout{};  ///< backward: input
  TensorView dq{}, dk{}, dv{};
  TensorView dbias{};   ///< optional, shaped as bias
  TensorView dsinks{};  ///< optional, fp32 [heads]
};

/// Throws InvalidArgument naming the tensor if the operands do not fit the problem, planned for a
/// device: shape, dtype, device, null or missing data, strides, overlapping outputs, sequence
/// offsets out of order.
STROBE_API void validate(const Problem& problem, const Tensors& tensors, Device device);

/// Yes, or the list of what is missing.
struct Support {
  std::vector<std::string> missing{};
  std::string kernel{};  ///< which one would compute it, where the implementation has several

  explicit operator bool() const { return missing.empty(); }
};

/// How a kernel will do it, in words: tile sizes, ISA, threads. Printed and recorded.
using TuningRecord = std::vector<std::pair<std::string, std::string>>;

/// What the weights of a row are relative to while keys arrive, where a kernel can do either.
enum class SoftmaxReference {
  automatic,  ///< what is faster for the problem; both are as exact
  running,    ///< the row's largest logit so far, or nearly: as fast whatever the inputs are
  fixed,      ///< that of its first keys; where it turns out too low, some is computed again
};

/// "automatic", "running" or "fixed".
STROBE_API std::string_view name_of(SoftmaxReference reference);
STROBE_API std::optional<SoftmaxReference> parse_softmax_reference(std::string_view name);

struct PlanOptions {
  int threads = 0;    ///< CPU threads; 0 takes STROBE_THREADS or the cores for this process
  int device = 0;     ///< which GPU
  bool tf32 = false;  ///< fp32 on GPUs may be rounded to TF32 for products: faster, less exact
  bool deterministic = false;  ///< the backward pass on GPUs gives the same bits in every run
  SoftmaxReference reference = SoftmaxReference::automatic;  ///< forward, of 16 bits, on Hopper
  /// How to cut the problem, one of Implementation::variants. If empty, as was tuned for it on this
  /// device, else as usual.
  std::string variant{};
};

/// A variant that was measured to be faster than the usual one.
struct TunedVariant {
  std::string variant{};
  std::string usual{};
  double ms = 0, usual_ms = 0;
};

/// What `plan` decided for one problem; reusable, also from several threads at once as long as
/// each call has its own workspace.
struct Plan {
  Problem problem{};
  Device device{};  ///< where all tensors and the workspace must be
  TuningRecord tuning{};
  std::size_t workspace_bytes = 0;
  bool deterministic = true;            ///< the same inputs give the same bits
  std::shared_ptr<const void> state{};  ///< the implementation's own
};

/// In what an implementation that was not made for this library differs from one that was.
struct Habits {
  bool guest = false;      ///< joined while the program runs: Registry::best never chooses it
  bool recordable = true;  ///< what it puts on a stream may be recorded, to be repeated as a whole
  bool gives_lse = true;   ///< otherwise its forward pass must not be given one
};

/// A CUDA stream handle, null for the CPU and the default stream.
using Stream = void*;

/// One way to compute attention: a kernel of ours, the oracle, a vendor's library.
class STROBE_API Implementation {
 public:
  Implementation() = default;
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;
  virtual ~Implementation();

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  virtual Device::Kind device() const = 0;

  /// What keeps this implementation from the problem, planned so, on this machine; empty if nothing
  /// does.
  virtual Support supports(const Problem& problem, const PlanOptions& options = {}) const = 0;

  /// The ways in which it can cut the problem on that device, the usual one first; none if there is
  /// only one. They are thought to fit: what the compiler makes of them is known when it is
  /// planned.
  virtual std::vector<std::string> variants(const Problem& problem,
                                            const PlanOptions& options = {}) const;

  /// Has plans of the problem, in this process and later ones, take this variant unless they name
  /// one; with nothing, the usual one again. Throws Unsupported if there are no variants, and Error
  /// if it cannot be kept.
  virtual void keep_variant(const Problem& problem, const PlanOptions& options,
                            const std::optional<TunedVariant>& tuned) const;

  /// Throws InvalidArgument for a wrong problem or variant and Unsupported with the list of what is
  /// missing, for a variant also if it would spill registers.
  Plan plan(const Problem& problem, const PlanOptions& options = {}) const;

  /// Computes. Allocates nothing: `workspace` holds at least plan.workspace_bytes, aligned to 64.
  /// On the CPU it returns when done; on a GPU it is ordered on the stream, and the first tensors
  /// that lie unusually, such as unaligned or expanded ones, have another kernel compiled and
  /// loaded.
  void run(const Plan& plan, const Tensors& tensors, void* workspace, std::size_t workspace_bytes,
           Stream stream = nullptr) const;

  /// The same in two steps, for whoever times the first. A library that returns memory of its own
  /// computes in `compute`, and has its results copied to the outputs by `deliver`, which its
  /// callers would not do.
  void compute(const Plan& plan, const Tensors& tensors, void* workspace,
               std::size_t workspace_bytes, Stream stream = nullptr) const;

  /// After `compute` on the same tensors; a second time it does nothing.
  virtual void deliver(const Plan& plan, const Tensors& tensors, Stream stream = nullptr) const;

  virtual Habits habits() const;

 protected:
  virtual Plan make_plan(const Problem& problem, const PlanOptions& options) const = 0;
  virtual void execute(const Plan& plan, const Tensors& tensors, void* workspace,
                       Stream stream) const = 0;
};

/// "flash" on the CPU, "cuda:flash" on GPUs: there may be one of a name for each device.
STROBE_API std::string full_name(const Implementation& implementation);

}  // namespace strobe
