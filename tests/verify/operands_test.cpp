#include "verify/operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "strobe/error.h"
#include "strobe/registry.h"
#include "verify/outputs.h"
#include "verify/rows.h"

namespace strobe::lab {
namespace {

std::vector<double> values(const TensorView& view) {
  return to_doubles(packed_bytes(view), view.dtype);
}

Case case_of(const char* problem, Inputs inputs = {}) {
  return {Problem::parse(problem), inputs};
}

class EveryStorage : public testing::TestWithParam<Storage> {};

TEST_P(EveryStorage, GivesValidTensorsWithTheSameNumbers) {
  for (const char* text :
       {"b2 sq5 sk7 h4 hk2 d8 dv6 fp16 bwd bias:bhqk sinks alibi",
        "b2 sq5 h3 d8 bf16 qkvpacked bwd", "b2 sq5 sk7 h4 hk2 d8 fp32 kvpacked bwd",
        "lq3,0,5 lk2,4,1 h4 hk2 d8 fp32 bwd", "lq3,0,5 h2 d8 fp32 qkvpacked bwd"}) {
    const Problem problem = Problem::parse(text);
    if (GetParam() == Storage::expanded && problem.varlen()) continue;
    const Operands plain({problem, {.seed = 3}});
    const Operands stored({problem, {.seed = 3, .storage = GetParam()}});
    const Tensors expected = plain.tensors(Pass::backward),
                  tensors = stored.tensors(Pass::backward);
    EXPECT_NO_THROW(validate(problem, tensors, {})) << text;
    EXPECT_EQ(values(tensors.q), values(expected.q)) << text;
    EXPECT_EQ(values(tensors.dout), values(expected.dout)) << text;
    if (GetParam() != Storage::expanded) {
      EXPECT_EQ(values(tensors.k), values(expected.k)) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryStorage,
                         testing::Values(Storage::contiguous, Storage::transposed, Storage::sliced,
                                         Storage::expanded, Storage::noncontiguous_dout),
                         [](const auto& test) {
                           std::string name(name_of(test.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Operands, StorageMeansWhatItSays) {
  const char* text = "b2 sq5 sk7 h4 d8 fp32 bwd";
  const Operands transposed(case_of(text, {.storage = Storage::transposed}));
  EXPECT_EQ(transposed.tensors(Pass::forward).q.strides[1], 8);
  EXPECT_EQ(transposed.tensors(Pass::forward).q.strides[2], 5 * 8);

  const Operands sliced(case_of(text, {.storage = Storage::sliced}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(sliced.tensors(Pass::forward).q.data) % 64, 4u);
  EXPECT_EQ(sliced.tensors(Pass::forward).q.strides[2], 11);

  const Operands expanded(case_of(text, {.storage = Storage::expanded}));
  EXPECT_EQ(expanded.tensors(Pass::forward).k.strides[0], 0);
  EXPECT_NE(expanded.tensors(Pass::backward).dk.strides[0], 0);

  const Operands strided(case_of(text, {.storage = Storage::noncontiguous_dout}));
  EXPECT_EQ(strided.tensors(Pass::backward).dout.strides[2], 5 * 13);
  EXPECT_EQ(strided.tensors(Pass::backward).q.strides[2], 8);
}

TEST(Operands, PackedTensorsShareMemory) {
  const Operands operands(case_of("b2 sq5 h3 d8 fp32 qkvpacked bwd"));
  const Tensors tensors = operands.tensors(Pass::backward);
  EXPECT_EQ(static_cast<float*>(tensors.k.data) - static_cast<float*>(tensors.q.data), 3 * 8);
  EXPECT_EQ(static_cast<float*>(tensors.dv.data) - static_cast<float*>(tensors.dq.data), 2 * 3 * 8);
}

TEST(Operands, NumbersAreNormalAndFreshForEverySeedAndTensor) {
  const Operands operands(case_of("b2 sq64 h4 d32 fp32", {.scale = 3, .seed = 1}));
  const Operands other(case_of("b2 sq64 h4 d32 fp32", {.scale = 3, .seed = 2}));
  const auto q = values(operands.tensors(Pass::forward).q);
  const auto k = values(operands.tensors(Pass::forward).k);
  EXPECT_NE(q, k);
  EXPECT_NE(q, values(other.tensors(Pass::forward).q));
  double sum = 0, squares = 0;
  for (const double value : q) sum += value, squares += value * value;
  const auto count = static_cast<double>(q.size());
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / count), 3, 0.1);
}

TEST(Operands, OpposedInputsMakeEveryLogitNegative) {
  const Operands operands(case_of("sq8 d16 fp32", {.distribution = Distribution::opposed}));
  for (const double value : values(operands.tensors(Pass::forward).q)) EXPECT_GE(value, 0);
  for (const double value : values(operands.tensors(Pass::forward).k)) EXPECT_LE(value, 0);
}

TEST(Operands, MaskedBiasHidesKeysAndWholeRows) {
  const Operands operands(case_of("sq20 sk9 fp32 bias:qk", {.masked_bias = true}));
  const auto bias = values(operands.tensors(Pass::forward).bias);
  const auto hidden =
      std::count_if(bias.begin(), bias.end(), [](double b) { return std::isinf(b); });
  EXPECT_GT(hidden, 40);
  EXPECT_LT(hidden, 120);
  for (std::size_t key = 0; key < 9; ++key) EXPECT_TRUE(std::isinf(bias[3 * 9 + key]));
}

TEST(Operands, OutputsStartAsPoisonAndAreNamedWhileTheyAre) {
  Operands operands(case_of("b2 sq5 h3 d8 fp16 bwd"));
  const Tensors tensors = operands.tensors(Pass::backward);
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "out [0, 0, 0, 0]");
  for (const double value : values(tensors.dq)) EXPECT_TRUE(std::isnan(value));
  const Rows rows(tensors.out);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    std::fill(rows[row].begin(), rows[row].end(), std::byte{0});
  }
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "lse [0, 0, 0]");
  EXPECT_EQ(operands.unwritten(Pass::backward, tensors), "dq [0, 0, 0, 0]");
  operands.poison_outputs(Pass::forward);
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "out [0, 0, 0, 0]");
}

TEST(Operands, TheFirstThatWasNotWrittenIsNamedWhoeverFindsIt) {
  const Operands operands(case_of("b3 sq4096 h8 d64 fp16"));  // large enough for several cores
  const Tensors tensors = operands.tensors(Pass::forward);
  for (const TensorView* view : {&tensors.out, &tensors.lse}) {
    const Rows rows(*view);
    for (std::int64_t row = 0; row < rows.count(); ++row)
      std::fill(rows[row].begin(), rows[row].end(), std::byte{0});
  }
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "");
  const Rows rows(tensors.out);
  const auto leave_out = [&](std::int64_t row, std::size_t column) {
    std::fill_n(rows[row].begin() + static_cast<std::ptrdiff_t>(2 * column), 2, kPoison);
  };
  leave_out(rows.count() - 1, 63);
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "out [2, 4095, 7, 63]");
  leave_out(rows.count() / 2 + 8, 5);
  leave_out(rows.count() / 2 + 7, 9);
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "out [1, 2048, 7, 9]");
  leave_out(1, 0);
  EXPECT_EQ(operands.unwritten(Pass::forward, tensors), "out [0, 0, 1, 0]");
}

TEST(Operands, NoticesWritesBesideEveryOutput) {
  for (const Storage storage : {Storage::contiguous, Storage::transposed, Storage::sliced}) {
    Operands operands(case_of("b2 sq5 h3 d8 fp32 sinks bias:bhqk bwd", {.storage = storage}));
    EXPECT_EQ(operands.damaged_surroundings(), "");
    const Tensors tensors = operands.tensors(Pass::backward);
    for (const auto& output : kOutputs) {
      const TensorView& view = tensors.*output.view;
      const Rows rows(view);
      std::byte* const past_the_end = rows[rows.count() - 1].data() + rows[0].size();
      *past_the_end = std::byte{0};
      EXPECT_EQ(operands.damaged_surroundings(), output.name) << name_of(storage);
      *past_the_end = kPoison;
      std::byte* const before = static_cast<std::byte*>(view.data) - 1;
      *before = std::byte{0};
      EXPECT_EQ(operands.damaged_surroundings(), output.name) << name_of(storage);
      *before = kPoison;
    }
  }
}

TEST(Operands, FingerprintSeesEveryInput) {
  Operands operands(case_of("b2 sq5 h3 d8 fp16"));
  const auto before = operands.inputs_fingerprint();
  static_cast<std::uint16_t*>(operands.tensors(Pass::forward).v.data)[239] ^= 1;
  EXPECT_NE(operands.inputs_fingerprint(), before);
}

TEST(Operands, TooLargeIsAnErrorNotACrash) {
  EXPECT_THROW(Operands(case_of("b2000000 s2000000 h8 d128 fp32")), OutOfMemory);
  EXPECT_THROW(Operands(case_of("lq3,4 fp32", {.storage = Storage::expanded})), InvalidArgument);
}

TEST(Case, NameAndCommandSayEverythingThatDiffers) {
  const Case what = case_of("b2 sq5 h3 d8 fp16 bias:qk bwd", {.scale = 3,
                                                              .distribution = Distribution::opposed,
                                                              .seed = 7,
                                                              .storage = Storage::sliced,
                                                              .masked_bias = true});
  EXPECT_EQ(what.name(),
            "b2 sq5 h3 d8 fp16 bias:qk bwd, x3, opposed, sliced, masked bias, inputs 7");
  EXPECT_EQ(
      what.command(Registry::instance().find("flash")),
      "strobe verify --problem \"b2 sq5 h3 d8 fp16 bias:qk bwd\" --impl flash --pass backward "
      "--inputs-scale 3 --distribution opposed --storage sliced --masked-bias --seed 7");
}

/// Only named.
class OnGpus final : public Implementation {
 public:
  explicit OnGpus(bool guest) : guest_(guest) {}
  std::string_view name() const override { return "x"; }
  std::string_view summary() const override { return "for tests"; }
  Device::Kind device() const override { return Device::Kind::cuda; }
  Support supports(const Problem&, const PlanOptions&) const override { return {}; }
  Habits habits() const override { return {.guest = guest_}; }

 private:
  Plan make_plan(const Problem&, const PlanOptions&) const override { return {}; }
  void execute(const Plan&, const Tensors&, void*, Stream) const override {}
  bool guest_;
};

TEST(Case, CommandSaysHowItWasPlanned) {
  const Case what = case_of("s8 d8 bf16");
  const std::string usual =
      "strobe verify --problem \"b1 sq8 h1 d8 bf16\" --impl cuda:x --pass forward";
  EXPECT_EQ(what.command(OnGpus(false)), usual);
  EXPECT_EQ(
      what.command(OnGpus(false), {.device = 1,
                                   .tf32 = true,
                                   .deterministic = true,
                                   .reference = SoftmaxReference::running,
                                   .variant = "64x64/2/1"}),
      usual + " --device cuda:1 --tf32 --deterministic --reference running --variant 64x64/2/1");
  EXPECT_EQ(what.command(OnGpus(true)), "") << "the program has no guests";
}

}  // namespace
}  // namespace strobe::lab
