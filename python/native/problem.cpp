#include "problem.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "core/text.h"
#include "strobe/error.h"

namespace strobe::python {
namespace {

struct Argument {
  const char* name;
  const TensorView* view;
};

void require_rank(const Argument& argument, int rank, const char* shape) {
  if (argument.view->rank != rank) {
    throw InvalidArgument(argument.name,
                          concat("has ", argument.view->rank, " axes, ", shape, " is needed"));
  }
}

void require_size(const Argument& argument, int axis, std::int64_t size, const char* of_what) {
  const std::int64_t has = argument.view->shape[axis];
  if (has != size) {
    throw InvalidArgument(argument.name,
                          concat("has ", has, " on axis ", axis, ", ", of_what, " is ", size));
  }
}

void require_dtype(const Argument& argument, DType dtype) {
  if (argument.view->dtype != dtype) {
    throw nb::type_error(concat(argument.name, " is of ", name_of(argument.view->dtype), ", ",
                                name_of(dtype), " is needed")
                             .c_str());
  }
}

/// Views of arguments that were left out have no axes.
bool present(const TensorView& view) {
  return view.rank > 0;
}

void check_devices(const Tensors& inputs) {
  for (const Argument& argument :
       std::initializer_list<Argument>{{"k", &inputs.k},
                                       {"v", &inputs.v},
                                       {"bias", &inputs.bias},
                                       {"sinks", &inputs.sinks},
                                       {"alibi_slopes", &inputs.alibi_slopes},
                                       {"cu_seqlens_q", &inputs.cu_seqlens_q},
                                       {"cu_seqlens_k", &inputs.cu_seqlens_k},
                                       {"out", &inputs.out},
                                       {"lse", &inputs.lse},
                                       {"dout", &inputs.dout}}) {
    if (present(*argument.view) && argument.view->device != inputs.q.device) {
      throw InvalidArgument(argument.name, concat("is on ", to_string(argument.view->device),
                                                  ", q is on ", to_string(inputs.q.device)));
    }
  }
}

/// Heads and dims, which lie on the last two axes however the rest is.
void check_heads_and_dims(const Tensors& inputs) {
  const int heads = inputs.q.rank - 2, dim = inputs.q.rank - 1;
  if (inputs.q.dtype != DType::fp32 && inputs.q.dtype != DType::fp16 &&
      inputs.q.dtype != DType::bf16) {
    throw nb::type_error(
        concat("q is of ", name_of(inputs.q.dtype), ", float32, float16 or bfloat16 is needed")
            .c_str());
  }
  for (const Argument& argument : {Argument{"k", &inputs.k}, Argument{"v", &inputs.v}})
    require_dtype(argument, inputs.q.dtype);
  require_size({"k", &inputs.k}, dim, inputs.q.shape[dim], "the dim of q");
  require_size({"v", &inputs.v}, heads, inputs.k.shape[heads], "the number of heads of k");
  for (const Argument& argument :
       {Argument{"q", &inputs.q}, Argument{"k", &inputs.k}, Argument{"v", &inputs.v}}) {
    if (argument.view->shape[heads] < 1)
      throw InvalidArgument(argument.name, "has no heads, at least 1 is needed");
    if (argument.view->shape[dim] < 1 || argument.view->shape[dim] > 512) {
      throw InvalidArgument(argument.name, concat("has a dim of ", argument.view->shape[dim],
                                                  ", allowed is 1 to 512"));
    }
  }
  if (inputs.q.shape[heads] % inputs.k.shape[heads] != 0) {
    throw InvalidArgument(
        "k", concat("has ", inputs.k.shape[heads], " heads, which does not divide the ",
                    inputs.q.shape[heads], " of q"));
  }
}

void check_dtypes_of_the_rest(const Tensors& inputs) {
  for (const Argument& argument :
       {Argument{"sinks", &inputs.sinks}, Argument{"alibi_slopes", &inputs.alibi_slopes},
        Argument{"lse", &inputs.lse}}) {
    if (present(*argument.view)) require_dtype(argument, DType::fp32);
  }
  for (const Argument& argument : {Argument{"bias", &inputs.bias}, Argument{"out", &inputs.out},
                                   Argument{"dout", &inputs.dout}}) {
    if (present(*argument.view)) require_dtype(argument, inputs.q.dtype);
  }
}

/// A size that a problem need not name where it is as usual: then its text does not either.
std::optional<std::int64_t> unless_usual(std::int64_t size, std::int64_t usual) {
  return size == usual ? std::nullopt : std::optional(size);
}

void set_dense(const Tensors& inputs, Problem& problem) {
  problem.batch = inputs.q.shape[0];
  problem.seqlen_q = inputs.q.shape[1];
  problem.seqlen_k = unless_usual(inputs.k.shape[1], problem.seqlen_q);
  require_size({"k", &inputs.k}, 0, problem.batch, "the batch of q");
  require_size({"v", &inputs.v}, 0, problem.batch, "the batch of q");
  require_size({"v", &inputs.v}, 1, problem.keys(), "the length of k");
}

/// The longest sequence of a batch with these offsets, or what the caller says it is.
std::int64_t longest(const Argument& offsets, const char* longest_name,
                     const std::optional<std::int64_t>& said, std::int64_t rows) {
  const std::int64_t batch = offsets.view->shape[0] - 1;
  if (said) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (*said < 0 || *said > kMost)
      throw InvalidArgument(longest_name, concat("is ", *said, ", allowed is 0 to ", kMost));
    return *said;
  }
  if (offsets.view->device.kind != Device::Kind::cpu) {
    throw InvalidArgument(longest_name, concat("is needed where ", offsets.name,
                                               " is on a GPU, for it is not read before"));
  }
  const auto at = [&](std::int64_t i) -> std::int64_t {
    return static_cast<const std::int32_t*>(offsets.view->data)[i * offsets.view->strides[0]];
  };
  // Rows past the last offset belong to no sequence, but the plan is made for all of them.
  std::int64_t most = (rows + batch - 1) / batch;
  for (std::int64_t i = 0; i < batch; ++i) most = std::max(most, at(i + 1) - at(i));
  return std::min(most, rows);  // more there cannot be, whatever the offsets say
}

/// Lengths with this maximum and total: a plan serves all others, so that it need not be made anew
/// whenever the rows are divided otherwise.
std::vector<std::int64_t> lengths(std::int64_t batch, std::int64_t most, std::int64_t rows) {
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(batch));
  for (std::int64_t i = 0; i < batch; ++i) {
    result.push_back(std::min(most, rows));
    rows -= result.back();
  }
  return result;
}

void set_variable_length(const Tensors& inputs, const Settings& settings, Problem& problem) {
  const Argument offsets_q{"cu_seqlens_q", &inputs.cu_seqlens_q};
  const Argument offsets_k{"cu_seqlens_k", &inputs.cu_seqlens_k};
  for (const Argument& offsets : {offsets_q, offsets_k}) {
    require_dtype(offsets, DType::int32);
    require_rank(offsets, 1, "[batch + 1]");
    if (offsets.view->shape[0] < 2)
      throw InvalidArgument(offsets.name, "has no sequence, at least 2 offsets are needed");
  }
  problem.batch = inputs.cu_seqlens_q.shape[0] - 1;
  require_size(offsets_k, 0, problem.batch + 1, "the size of cu_seqlens_q");
  const std::int64_t rows_q = inputs.q.shape[0], rows_k = inputs.k.shape[0];
  require_size({"v", &inputs.v}, 0, rows_k, "the number of rows of k");
  problem.seqlen_q = longest(offsets_q, "max_seqlen_q", settings.max_seqlen_q, rows_q);
  problem.seqlen_k = unless_usual(longest(offsets_k, "max_seqlen_k", settings.max_seqlen_k, rows_k),
                                  problem.seqlen_q);
  problem.lengths_q = lengths(problem.batch, problem.seqlen_q, rows_q);
  problem.lengths_k = lengths(problem.batch, problem.keys(), rows_k);
}

/// An axis of size 1 is broadcast, unless the problem's is 1 as well.
Bias bias_of(const TensorView& bias, const Problem& problem) {
  require_rank({"bias", &bias}, 4, "[batch or 1, heads or 1, seqlen_q or 1, seqlen_k]");
  return {.per_batch = bias.shape[0] == problem.batch,
          .per_head = bias.shape[1] == problem.heads,
          .per_query = bias.shape[2] == problem.seqlen_q};
}

}  // namespace

Problem problem_of(const Tensors& inputs, const Settings& settings, Pass pass) {
  const bool packed = present(inputs.cu_seqlens_q);
  if (present(inputs.cu_seqlens_k) && !packed)
    throw InvalidArgument("cu_seqlens_q", "is needed where cu_seqlens_k is given");
  for (const Argument& argument :
       {Argument{"q", &inputs.q}, Argument{"k", &inputs.k}, Argument{"v", &inputs.v}}) {
    require_rank(argument, packed ? 3 : 4,
                 packed ? "[total, heads, dim] with cu_seqlens" : "[batch, seqlen, heads, dim]");
  }
  check_devices(inputs);
  check_heads_and_dims(inputs);
  check_dtypes_of_the_rest(inputs);

  const int heads = inputs.q.rank - 2, dim = inputs.q.rank - 1;
  Problem problem{.pass = pass,
                  .heads = inputs.q.shape[heads],
                  .heads_k = unless_usual(inputs.k.shape[heads], inputs.q.shape[heads]),
                  .dim = inputs.q.shape[dim],
                  .dim_v = unless_usual(inputs.v.shape[dim], inputs.q.shape[dim]),
                  .dtype = inputs.q.dtype,
                  .scale = settings.scale,
                  .causal = settings.causal,
                  .window = settings.window,
                  .softcap = settings.softcap,
                  .alibi = present(inputs.alibi_slopes),
                  .sinks = present(inputs.sinks),
                  .dropout = settings.dropout,
                  .dropout_seed = settings.dropout > 0 ? settings.dropout_seed : 0};
  if (packed)
    set_variable_length(inputs, settings, problem);
  else
    set_dense(inputs, problem);
  if (present(inputs.bias)) problem.bias = bias_of(inputs.bias, problem);
  problem.validate();
  return problem;
}

}  // namespace strobe::python
