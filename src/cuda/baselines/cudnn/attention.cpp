#include "cuda/baselines/cudnn/attention.h"

#include "core/text.h"
#include "cuda/baselines/shared_handle.h"
#include "cuda/driver/graph.h"
#include "cuda/driver/memory.h"
#include "cuda/workspace.h"
#include "strobe/error.h"

namespace strobe::cuda::cudnn {
namespace {

SharedHandle<abi::Handle>& handle_of(const driver::Device& device) {
  return shared_handle<abi::Handle>(device, library().cudnnCreate);
}

Problem with_layout(Problem problem, Layout layout) {
  problem.layout = layout;
  return problem;
}

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

/// Whether a tensor [batch, rows, heads, dim] has these strides of [batch, heads, rows, dim].
bool lies_so(const TensorView& view, const Axes& strides) {
  const Axes order = {0, 2, 1, 3};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto axis = static_cast<std::size_t>(order[i]);
    if (view.shape[axis] > 1 && view.strides[axis] != strides[i]) return false;
  }
  return is_aligned(view.data);
}

/// LSE [batch, heads, rows].
bool lies_dense(const TensorView& lse) {
  const auto& [batch, head, row, none, nothing] = lse.strides;
  return is_aligned(lse.data) && (lse.shape[2] <= 1 || row == 1) &&
         (lse.shape[1] <= 1 || head == lse.shape[2]) &&
         (lse.shape[0] <= 1 || batch == lse.shape[1] * lse.shape[2]);
}

/// Between an LSE that lies anywhere and a dense one. A copy for each head is slow, but it is rare.
void copy_lse(const TensorView& lse, float* copy, bool from_copy, cuda::abi::Stream stream) {
  const auto bytes = static_cast<std::size_t>(lse.shape[2]) * sizeof(float);
  for (std::int64_t b = 0; b < lse.shape[0]; ++b) {
    for (std::int64_t h = 0; h < lse.shape[1]; ++h, copy += lse.shape[2]) {
      float* row = static_cast<float*>(lse.data) + b * lse.strides[0] + h * lse.strides[1];
      driver::copy_async(from_copy ? row : copy, from_copy ? copy : row, bytes, stream);
    }
  }
}

}  // namespace

Attention::Attention(const driver::Device& device, const Problem& problem, bool deterministic)
    : device_(device),
      problem_(problem),
      deterministic_(deterministic),
      engine_(make_engine(problem.layout)),
      padder_(device) {
  const auto add = [this](Operand operand, TensorView Tensors::*view, Axes OperandStrides::*strides,
                          bool output) {
    slots_.push_back({operand, view, strides, output});
  };
  const bool backward = problem.pass == Pass::backward;
  add(Operand::q, &Tensors::q, &OperandStrides::q, false);
  add(Operand::k, &Tensors::k, &OperandStrides::k, false);
  add(Operand::v, &Tensors::v, &OperandStrides::v, false);
  add(Operand::out, &Tensors::out, &OperandStrides::out, !backward);
  if (backward) {
    add(Operand::dout, &Tensors::dout, &OperandStrides::dout, false);
    add(Operand::dq, &Tensors::dq, &OperandStrides::dq, true);
    add(Operand::dk, &Tensors::dk, &OperandStrides::dk, true);
    add(Operand::dv, &Tensors::dv, &OperandStrides::dv, true);
  }
  plan_workspace();
}

void Attention::plan_workspace() {
  const std::int64_t rows = problem_.batch * problem_.heads * problem_.seqlen_q;
  const std::int64_t key_rows = problem_.batch * problem_.kv_heads() * problem_.keys();
  const std::int64_t floats = sizeof(float);
  WorkspacePlan plan;
  plan.take(static_cast<std::int64_t>(engine_.workspace_bytes()));
  if (problem_.pass == Pass::backward) {
    row_sums_ = plan.take(rows * floats);
    if (!deterministic_) dq_sums_ = plan.take(rows * problem_.dim * floats);
  }
  lse_copy_ = plan.take(rows * floats);
  copies_begin_ = plan.bytes();
  const auto element = static_cast<std::int64_t>(size_of(problem_.dtype));
  for (Slot& slot : slots_) {
    const bool of_keys = slot.operand == Operand::k || slot.operand == Operand::v ||
                         slot.operand == Operand::dk || slot.operand == Operand::dv;
    const bool of_values = slot.operand == Operand::v || slot.operand == Operand::dv ||
                           slot.operand == Operand::out || slot.operand == Operand::dout;
    const std::int64_t dim = of_values ? problem_.value_dim() : problem_.dim;
    slot.copy = plan.take((of_keys ? key_rows : rows) * dim * element);
  }
  workspace_bytes_ = plan.bytes();
}

Engine Attention::make_engine(Layout layout) const {
  const Problem problem = with_layout(problem_, layout);
  const cuda::driver::OutsideOfCapture scope(device_);  // a call may be the first that lies so
  auto& device = handle_of(device_);
  const std::lock_guard lock(device.busy);
  Graph graph = problem.pass == Pass::forward ? forward_graph(library(), problem)
                                              : backward_graph(library(), problem, deterministic_);
  return Engine(library(), std::move(graph), {.handle = device.handle});
}

TuningRecord Attention::tuning() const {
  return {{"library", concat("cuDNN ", library().version_text())},
          {"engine", concat(engine_.index())},
          {"workspace", concat(copies_begin_)},
          {"room for copies", concat(workspace_bytes_ - copies_begin_)}};
}

Layout Attention::layout_for(const Tensors& tensors) const {
  const OperandStrides strides = natural_strides(problem_);
  for (const Slot& slot : slots_) {
    if (!lies_so(tensors.*slot.view, strides.*slot.strides)) return Layout::separate;
  }
  return problem_.layout;
}

const Engine& Attention::engine_for(Layout layout) const {
  if (layout == problem_.layout) return engine_;
  std::call_once(separate_once_, [&] { separate_.emplace(make_engine(layout)); });
  if (separate_->workspace_bytes() > engine_.workspace_bytes()) {
    throw Error(concat("cuDNN needs ", separate_->workspace_bytes(),
                       " bytes of workspace for tensors that are not packed, planned are ",
                       engine_.workspace_bytes()));
  }
  return *separate_;
}

std::vector<void*> Attention::places_of(const Tensors& tensors, Layout layout,
                                        std::byte* workspace) const {
  const OperandStrides strides = natural_strides(with_layout(problem_, layout));
  std::vector<void*> places;
  for (const Slot& slot : slots_) {
    const TensorView& view = tensors.*slot.view;
    places.push_back(lies_so(view, strides.*slot.strides) ? view.data : workspace + slot.copy);
  }
  const bool lse_lies_so = tensors.lse.given() && lies_dense(tensors.lse);
  places.push_back(lse_lies_so ? tensors.lse.data : workspace + lse_copy_);
  return places;
}

void Attention::run(const Tensors& tensors, void* workspace, cuda::abi::Stream stream) const {
  std::byte* const base = aligned_workspace(workspace);
  const Layout layout = layout_for(tensors);
  const Engine& engine = engine_for(layout);
  const std::vector<void*> places = places_of(tensors, layout, base);
  copy(tensors, places, Direction::in, stream);
  execute(engine, places, base, stream);
  copy(tensors, places, Direction::out, stream);
}

void Attention::copy(const Tensors& tensors, const std::vector<void*>& places, Direction direction,
                     cuda::abi::Stream stream) const {
  const bool in = direction == Direction::in;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const TensorView& view = tensors.*slots_[i].view;
    if (places[i] == view.data || slots_[i].output == in) continue;
    if (in)
      padder_.pad(view, places[i], view.shape[3], stream);
    else
      padder_.cut(places[i], view.shape[3], view, stream);
  }
  const bool lse_is_input = problem_.pass == Pass::backward;
  if (tensors.lse.given() && places.back() != tensors.lse.data && lse_is_input == in)
    copy_lse(tensors.lse, static_cast<float*>(places.back()), !in, stream);
}

void Attention::execute(const Engine& engine, const std::vector<void*>& places,
                        std::byte* workspace, cuda::abi::Stream stream) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers = places;
  const auto name = [&ids](Operand operand) { ids.push_back(static_cast<std::int64_t>(operand)); };
  for (const Slot& slot : slots_) name(slot.operand);
  name(Operand::lse);
  if (problem_.pass == Pass::backward) {
    name(Operand::row_sums);
    pointers.push_back(workspace + row_sums_);
    if (!deterministic_) {
      name(Operand::dq_sums);
      pointers.push_back(workspace + dq_sums_);
    }
  }
  auto& device = handle_of(device_);
  const std::lock_guard lock(device.busy);
  library().cudnnSetStream(device.handle, stream);
  engine.execute(device.handle, std::move(ids), std::move(pointers), workspace);
}

}  // namespace strobe::cuda::cudnn
