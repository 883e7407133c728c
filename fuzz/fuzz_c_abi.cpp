// Whatever a caller passes through strobe.h, a status comes back and no memory outside of what
// the arguments describe is touched.
//
// A pointer that claims more memory than it has cannot be seen by any C library. So every view
// whose extent is affordable gets a buffer of exactly that extent, where AddressSanitizer sees
// each step outside. A view that is not gets a pointer to nothing, and the call something that
// must be refused before any element is touched.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bytes.h"
#include "check.h"
#include "strobe/strobe.h"

namespace {

constexpr std::int64_t kLargestBuffer = 1 << 16;    // bytes
constexpr std::int64_t kLargestWork = 1 << 15;      // multiply-adds, so that a run takes no time
constexpr std::size_t kLargestWorkspace = 1 << 26;  // bytes
void* const kNowhere = reinterpret_cast<void*>(64);

bool accepted(strobe_status status) {
  check(status >= STROBE_OK && status < STROBE_INTERNAL, "no internal error:", strobe_last_error());
  check(status == STROBE_OK || *strobe_last_error() != '\0', "a failure leaves a message");
  return status == STROBE_OK;
}

// ---- the problem -----------------------------------------------------------------------------

struct Case {
  strobe_problem problem{};
  std::vector<std::int64_t> lengths_q{}, lengths_k{};

  bool varlen() const { return problem.lengths_q != nullptr || problem.lengths_k != nullptr; }
  std::int64_t keys() const { return problem.seqlen_k < 0 ? problem.seqlen_q : problem.seqlen_k; }
  std::int64_t kv_heads() const { return problem.heads_k < 0 ? problem.heads : problem.heads_k; }
  std::int64_t value_dim() const { return problem.dim_v < 0 ? problem.dim : problem.dim_v; }
};

double real(Bytes& bytes, std::initializer_list<double> tame) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::uint8_t choice = bytes.byte();
  if (choice < 224) return tame.begin()[choice % tame.size()];
  return std::array{kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                    1e308,     -1e-308,    1.0}[choice % 6];
}

/// Lengths for every sequence, where the batch is small enough to have them.
const std::int64_t* make_lengths(Bytes& bytes, const Case& given, std::vector<std::int64_t>& room) {
  if (given.problem.batch > 8) return nullptr;
  for (std::int64_t i = 0; i < given.problem.batch; ++i) {
    room.push_back(bytes.number({3, 0, 1, 5, given.problem.seqlen_q}));
  }
  room.shrink_to_fit();  // so that reading one entry more is seen
  return room.data();
}

void make_problem(Bytes& bytes, Case& made) {
  strobe_problem& problem = made.problem;
  strobe_problem_init(&problem);
  problem.pass = bytes.pick({0, 1, 0, 1, 2, -1});
  problem.dtype = bytes.pick({0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, -1});
  problem.batch = bytes.number({1, 2, 3});
  problem.seqlen_q = bytes.number({5, 1, 2, 0, 9, 17});
  problem.seqlen_k = bytes.number({-1, 1, 3, 0, 11, 33});
  problem.heads = bytes.number({1, 2, 4, 6});
  problem.heads_k = bytes.number({-1, 1, 2, 3});
  problem.dim = bytes.number({8, 1, 3, 16, 21});
  problem.dim_v = bytes.number({-1, 1, 5, 16});
  problem.layout = bytes.pick({0, 0, 0, 1, 2, 3, -1});
  problem.causal = bytes.pick({0, 1, -7});
  problem.scale = real(bytes, {std::numeric_limits<double>::quiet_NaN(), 0.5, -1.0, 0.0});
  problem.window_left = bytes.number({-1, 0, 2, 100});
  problem.window_right = bytes.number({-1, 0, 2, 100});
  problem.softcap = real(bytes, {0, 15, 1e-30});
  problem.alibi = bytes.pick({0, 1});
  problem.sinks = bytes.pick({0, 1});
  problem.bias = bytes.pick({0, 8, 9, 10, 12, 15, 1, 16, -1});
  problem.dropout = real(bytes, {0, 0.17, 0.999, -0.1});
  problem.dropout_seed = bytes.byte();
  if (bytes.byte() % 3 == 1) {
    problem.lengths_q = make_lengths(bytes, made, made.lengths_q);
    if (bytes.byte() % 8 != 1) problem.lengths_k = make_lengths(bytes, made, made.lengths_k);
  }
  if (bytes.byte() == 255) problem.struct_size = static_cast<std::size_t>(bytes.number({0, 8}));
}

/// Small enough to compute here. Only asked of valid problems.
bool is_small(const Case& given) {
  const strobe_problem& problem = given.problem;
  double work = static_cast<double>(problem.dim + given.value_dim());
  for (const auto size : {problem.batch, problem.heads, problem.seqlen_q + 1, given.keys() + 1}) {
    work *= static_cast<double>(size);
  }
  return work <= static_cast<double>(kLargestWork);
}

// ---- the tensors -----------------------------------------------------------------------------

using Shape = std::vector<std::int64_t>;
using Buffer = std::unique_ptr<std::uint8_t[]>;

struct Expected {
  strobe_tensor strobe_tensors::*member;
  std::int32_t dtype;
  Shape shape;
  bool used;
};

std::vector<Expected> expectations(const Case& given) {
  const strobe_problem& problem = given.problem;
  const auto rows = [&](std::int64_t seqlen, const Shape& lengths, std::int64_t heads,
                        std::int64_t dim) -> Shape {
    if (!given.varlen()) return {problem.batch, seqlen, heads, dim};
    std::int64_t total = 0;
    for (const auto length : lengths) total += length;
    return {total, heads, dim};
  };
  const bool backward = problem.pass == STROBE_BACKWARD;
  const Shape q = rows(problem.seqlen_q, given.lengths_q, problem.heads, problem.dim);
  const Shape out = rows(problem.seqlen_q, given.lengths_q, problem.heads, given.value_dim());
  const Shape k = rows(given.keys(), given.lengths_k, given.kv_heads(), problem.dim);
  const Shape v = rows(given.keys(), given.lengths_k, given.kv_heads(), given.value_dim());
  const Shape lse = given.varlen() ? Shape{problem.heads, q[0]}
                                   : Shape{problem.batch, problem.heads, problem.seqlen_q};
  const Shape bias = {problem.bias & STROBE_BIAS_BATCH ? problem.batch : 1,
                      problem.bias & STROBE_BIAS_HEAD ? problem.heads : 1,
                      problem.bias & STROBE_BIAS_QUERY ? problem.seqlen_q : 1, given.keys()};
  const Shape per_head = {problem.heads};
  const Shape offsets = {problem.batch + 1};
  using T = strobe_tensors;
  return {{&T::q, problem.dtype, q, true},
          {&T::k, problem.dtype, k, true},
          {&T::v, problem.dtype, v, true},
          {&T::out, problem.dtype, out, true},
          {&T::lse, STROBE_FP32, lse, true},
          {&T::bias, problem.dtype, bias, problem.bias != 0},
          {&T::sinks, STROBE_FP32, per_head, problem.sinks != 0},
          {&T::alibi_slopes, STROBE_FP32, per_head, problem.alibi != 0},
          {&T::cu_seqlens_q, STROBE_INT32, offsets, given.varlen()},
          {&T::cu_seqlens_k, STROBE_INT32, offsets, given.varlen()},
          {&T::dout, problem.dtype, out, backward},
          {&T::dq, problem.dtype, q, backward},
          {&T::dk, problem.dtype, k, backward},
          {&T::dv, problem.dtype, v, backward},
          {&T::dbias, problem.dtype, bias, backward && problem.bias != 0},
          {&T::dsinks, STROBE_FP32, per_head, backward && problem.sinks != 0}};
}

strobe_tensor dense(const Expected& expected) {
  strobe_tensor tensor{};
  tensor.dtype = expected.dtype;
  tensor.rank = static_cast<std::int32_t>(expected.shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = expected.shape.size(); axis-- > 0;) {
    tensor.shape[axis] = expected.shape[axis];
    tensor.strides[axis] = stride;
    stride *= std::max<std::int64_t>(expected.shape[axis], 1);
  }
  return tensor;
}

/// Makes one thing of the tensor different, often wrong.
void distort(Bytes& bytes, strobe_tensor& tensor) {
  const std::size_t axis = bytes.byte() % STROBE_MAX_RANK;
  switch (bytes.byte() % 6) {
    case 0:
      tensor.strides[axis] = bytes.number({0, 1, 7, 64, -1, -8});
      break;
    case 1:
      tensor.shape[axis] = bytes.number({tensor.shape[axis] ^ 1, 0, 1, 2});
      break;
    case 2:
      tensor.rank = bytes.pick({0, 1, 2, 3, 4, 5, 6, -1, std::numeric_limits<std::int32_t>::max()});
      break;
    case 3:
      tensor.dtype = bytes.pick({0, 1, 2, 3, 4, 5, 6, 7, -1});
      break;
    case 4:
      tensor.device = bytes.pick({1, 2, -1});
      break;
    case 5:
      std::reverse(tensor.strides, tensor.strides + std::clamp(tensor.rank, 0, 5));
      break;
  }
}

std::int64_t element_bytes(std::int32_t dtype) {
  switch (dtype) {
    case STROBE_FP32:
    case STROBE_INT32:
      return 4;
    case STROBE_FP16:
    case STROBE_BF16:
      return 2;
    default:
      return 1;
  }
}

/// Bytes below and from the first element that the view reaches; no `fits` if that is too much.
struct Extent {
  std::int64_t below = 0;
  std::int64_t from = 0;
  bool fits = false;
};

Extent extent(const strobe_tensor& tensor) {
  if (tensor.rank < 0 || tensor.rank > STROBE_MAX_RANK) return {};
  __int128 lowest = 0;
  __int128 highest = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] < 0) return {};
    if (tensor.shape[axis] == 0) return {.fits = true};
    const __int128 reach = static_cast<__int128>(tensor.strides[axis]) * (tensor.shape[axis] - 1);
    (reach < 0 ? lowest : highest) += reach;
    if (highest - lowest > kLargestBuffer) return {};
  }
  const std::int64_t size = element_bytes(tensor.dtype);
  if ((highest - lowest + 1) * size > kLargestBuffer) return {};
  return {.below = static_cast<std::int64_t>(-lowest) * size,
          .from = static_cast<std::int64_t>(highest + 1) * size,
          .fits = true};
}

/// Numbers of every kind: small ones, or any bits at all.
void fill(Bytes& bytes, std::uint8_t* data, std::int64_t size, std::int32_t dtype) {
  const std::uint8_t kind = bytes.byte();
  std::uint32_t state = kind;
  for (std::int64_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    data[i] = static_cast<std::uint8_t>(state >> 24);
    // Without the top bits of the exponent the values stay below 2.
    const std::int64_t element = element_bytes(dtype);
    if (kind < 192 && i % element == element - 1) data[i] &= 0xbf;
  }
}

void fill_offsets(Bytes& bytes, std::int32_t* offsets, const std::vector<std::int64_t>& lengths) {
  std::uint64_t sum = 0;  // which may wrap around: any offsets will do
  for (std::size_t i = 0; i <= lengths.size(); ++i) {
    const auto error = static_cast<std::uint64_t>(bytes.number({0, 0, 0, 0, 1, -1}));
    offsets[i] = static_cast<std::int32_t>(sum + error);
    if (i < lengths.size()) sum += static_cast<std::uint64_t>(lengths[i]);
  }
}

struct Call {
  strobe_tensors tensors{};
  std::vector<Buffer> buffers{};
  bool must_be_refused = false;
};

void place(Bytes& bytes, Call& call, strobe_tensor& tensor, bool used) {
  const Extent reach = extent(tensor);
  if (!reach.fits) {
    tensor.data = kNowhere;
    call.must_be_refused |= used;  // what the problem does not use is not to be touched anyway
    return;
  }
  const std::int64_t size = reach.below + reach.from;
  Buffer buffer(new std::uint8_t[static_cast<std::size_t>(size)]);
  fill(bytes, buffer.get(), size, tensor.dtype);
  tensor.data = buffer.get() + reach.below;
  call.buffers.push_back(std::move(buffer));
}

void make_call(Bytes& bytes, const Case& given, Call& call) {
  const strobe_tensor* earlier = &call.tensors.q;
  for (const auto& expected : expectations(given)) {
    strobe_tensor& tensor = call.tensors.*expected.member;
    const std::uint8_t choice = bytes.byte() % 16;
    if (expected.used ? choice == 1 : choice < 14) continue;  // not given
    tensor = dense(expected);
    if (choice == 2 || choice == 14) distort(bytes, tensor);
    if (choice == 15) distort(bytes, tensor), distort(bytes, tensor);
    if (choice == 3 && earlier->rank == tensor.rank && earlier->data != nullptr &&
        std::equal(tensor.shape, tensor.shape + tensor.rank, earlier->shape) &&
        tensor.dtype == earlier->dtype) {
      tensor = *earlier;  // two operands in one place
      continue;
    }
    place(bytes, call, tensor, expected.used);
    earlier = &tensor;
  }
  for (const auto& [member, lengths] :
       {std::pair{&strobe_tensors::cu_seqlens_q, &given.lengths_q},
        std::pair{&strobe_tensors::cu_seqlens_k, &given.lengths_k}}) {
    const strobe_tensor& offsets = call.tensors.*member;
    if (given.varlen() && offsets.data != nullptr && offsets.data != kNowhere &&
        extent(offsets).from >= static_cast<std::int64_t>((lengths->size() + 1) * 4)) {
      fill_offsets(bytes, static_cast<std::int32_t*>(offsets.data), *lengths);
    }
  }
  if (call.must_be_refused) {
    strobe_tensor& spoilt = call.tensors.*bytes.pick({&strobe_tensors::q, &strobe_tensors::k,
                                                      &strobe_tensors::v, &strobe_tensors::out});
    (bytes.byte() % 2 == 0 ? spoilt.rank : spoilt.dtype) = 9;
    if (spoilt.data == nullptr) spoilt.data = kNowhere;
  }
}

// ---- the calls -------------------------------------------------------------------------------

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

void run(Bytes& bytes, const Case& given, const strobe_plan* plan) {
  Call call;
  make_call(bytes, given, call);
  const std::size_t needed = strobe_plan_workspace_bytes(plan);
  if (needed > kLargestWorkspace) return;
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, needed) != 0) return;
  const std::unique_ptr<void, Free> workspace(memory);
  const std::uint8_t choice = bytes.byte();
  const bool too_small = choice == 1 && needed > 0;
  const bool missing = choice == 2 && needed > 0;
  const strobe_status status = strobe_run(plan, choice == 3 ? nullptr : &call.tensors,
                                          missing ? nullptr : memory, needed - too_small, nullptr);
  const bool done = accepted(status);
  check(!(done && (call.must_be_refused || too_small || missing || choice == 3)),
        "a wrong call is refused");
}

const char* implementation(Bytes& bytes) {
  const std::uint8_t choice = bytes.byte();
  if (choice == 0) return nullptr;
  if (choice == 255) return "no such implementation";
  return strobe_implementation_name(choice - 1U);
}

void describe(Bytes& bytes, const strobe_problem& problem) {
  const auto size = static_cast<std::size_t>(bytes.pick({200, 0, 1, 20}));
  const auto buffer = std::make_unique<char[]>(size);
  std::size_t needed = 0;
  const bool done = accepted(strobe_problem_text(&problem, buffer.get(), size, &needed));
  if (done) check(buffer[needed - 1] == '\0', "a text ends with a zero");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes({data, size});
  Case made;
  make_problem(bytes, made);
  const bool valid = accepted(strobe_problem_validate(&made.problem));
  const char* name = implementation(bytes);
  const std::int32_t threads = bytes.pick({1, 2, 0, 3, -1});
  accepted(strobe_supports(&made.problem, name));
  describe(bytes, made.problem);

  strobe_plan* plan = nullptr;
  const bool planned = accepted(strobe_plan_create(&made.problem, name, threads, &plan));
  check(planned == (plan != nullptr), "a plan comes exactly with success");
  check(valid || !planned, "no plan for a wrong problem");
  if (planned && is_small(made)) run(bytes, made, plan);
  strobe_plan_destroy(plan);
  return 0;
}
