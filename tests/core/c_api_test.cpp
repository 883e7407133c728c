#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "strobe/registry.h"
#include "strobe/strobe.h"
#include "support/tensors.h"

namespace {

strobe_problem sample() {
  strobe_problem problem;
  strobe_problem_init(&problem);
  problem.batch = 1;
  problem.seqlen_q = 5;
  problem.heads = 2;
  problem.dim = 8;
  problem.dtype = STROBE_FP32;
  return problem;
}

strobe_tensor to_c(const strobe::TensorView& view) {
  strobe_tensor tensor{};
  tensor.data = view.data;
  tensor.dtype = static_cast<int32_t>(view.dtype);
  tensor.rank = view.rank;
  std::copy(view.shape.begin(), view.shape.end(), tensor.shape);
  std::copy(view.strides.begin(), view.strides.end(), tensor.strides);
  return tensor;
}

bool error_mentions(const char* word) {
  return std::string(strobe_last_error()).find(word) != std::string::npos;
}

TEST(CApi, ComputesWhatTheCppInterfaceComputes) {
  const strobe_problem problem = sample();
  strobe_plan* plan = nullptr;
  ASSERT_EQ(strobe_plan_create(&problem, "flash", 1, &plan), STROBE_OK) << strobe_last_error();
  EXPECT_TRUE(std::string(strobe_plan_description(plan)).starts_with("flash isa="));
  strobe::test::Operands operands =
      strobe::test::make_operands(strobe::Problem::parse("s5 h2 d8 fp32"), 3);
  const strobe::Tensors views = operands.views();
  strobe_tensors tensors{};
  tensors.q = to_c(views.q);
  tensors.k = to_c(views.k);
  tensors.v = to_c(views.v);
  tensors.out = to_c(views.out);
  std::vector<std::byte> memory(strobe_plan_workspace_bytes(plan) + 64);
  void* workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  ASSERT_EQ(strobe_run(plan, &tensors, workspace, strobe_plan_workspace_bytes(plan), nullptr),
            STROBE_OK)
      << strobe_last_error();
  strobe::test::Operands expected =
      strobe::test::make_operands(strobe::Problem::parse("s5 h2 d8 fp32"), 3);
  strobe::test::run(strobe::Registry::instance().find("flash"),
                    strobe::Problem::parse("s5 h2 d8 fp32"), expected.views(), 1);
  EXPECT_EQ(operands.out.bytes(), expected.out.bytes());

  tensors.out.rank = 9;
  EXPECT_EQ(strobe_run(plan, &tensors, workspace, strobe_plan_workspace_bytes(plan), nullptr),
            STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("out has rank 9"));
  EXPECT_EQ(strobe_run(plan, nullptr, workspace, 0, nullptr), STROBE_INVALID_ARGUMENT);
  EXPECT_EQ(strobe_run(nullptr, &tensors, workspace, 0, nullptr), STROBE_INVALID_ARGUMENT);
  strobe_plan_destroy(plan);
}

TEST(CApi, WrongProblemsGiveAStatusAndAMessage) {
  strobe_problem problem = sample();
  problem.dim = -3;
  EXPECT_EQ(strobe_problem_validate(&problem), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("dim is -3"));
  problem = sample();
  problem.struct_size = 8;
  EXPECT_EQ(strobe_problem_validate(&problem), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("strobe_problem_init"));
  problem = sample();
  problem.dtype = 50;
  EXPECT_EQ(strobe_problem_validate(&problem), STROBE_INVALID_ARGUMENT);
  problem = sample();
  problem.bias = STROBE_BIAS_QUERY;
  EXPECT_EQ(strobe_problem_validate(&problem), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("STROBE_BIAS_KEY"));
  EXPECT_EQ(strobe_problem_validate(nullptr), STROBE_INVALID_ARGUMENT);
  const int64_t length = 5;  // of which no others may be read
  problem = sample();
  problem.lengths_q = problem.lengths_k = &length;
  problem.batch = int64_t{1} << 31;
  EXPECT_EQ(strobe_problem_validate(&problem), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("batch is 2147483648, allowed is 0 to 2147483647"))
      << strobe_last_error();
}

TEST(CApi, OptionsOfAPlan) {
  const strobe_problem problem = sample();
  strobe_plan_options options;
  strobe_plan_options_init(&options);
  options.threads = 1;
  strobe_plan* plan = nullptr;
  ASSERT_EQ(strobe_plan_create_with(&problem, nullptr, &options, &plan), STROBE_OK)
      << strobe_last_error();
  EXPECT_NE(std::string(strobe_plan_description(plan)).find("threads=1"), std::string::npos);
  strobe_plan_destroy(plan);
  const auto refused = [&](const char* word) {
    EXPECT_EQ(strobe_plan_create_with(&problem, nullptr, &options, &plan), STROBE_INVALID_ARGUMENT);
    EXPECT_TRUE(error_mentions(word)) << strobe_last_error();
    EXPECT_EQ(plan, nullptr);
    strobe_plan_options_init(&options);
  };
  options.struct_size = 4;
  refused("strobe_plan_options_init");
  options.device = 7;
  refused("options.device is 7");
  options.reference = 3;
  refused("options.reference is 3");
  options.variant = "64x64";
  refused("variant is '64x64'");
  EXPECT_EQ(strobe_plan_create_with(&problem, nullptr, nullptr, &plan), STROBE_INVALID_ARGUMENT);
  EXPECT_TRUE(error_mentions("options is null")) << strobe_last_error();
}

TEST(CApi, SupportsSaysWhatIsMissing) {
  strobe_problem problem = sample();
  EXPECT_EQ(strobe_supports(&problem, "flash"), STROBE_OK);
  problem.dtype = STROBE_INT8;
  EXPECT_EQ(strobe_supports(&problem, "flash"), STROBE_UNSUPPORTED);
  EXPECT_TRUE(error_mentions("int8"));
  EXPECT_EQ(strobe_supports(&problem, "nobody"), STROBE_INVALID_ARGUMENT);
  strobe_plan* plan = reinterpret_cast<strobe_plan*>(&problem);
  EXPECT_EQ(strobe_plan_create(&problem, nullptr, 0, &plan), STROBE_UNSUPPORTED);
  EXPECT_EQ(plan, nullptr);
}

TEST(CApi, TextAndNames) {
  const strobe_problem problem = sample();
  size_t needed = 0;
  EXPECT_EQ(strobe_problem_text(&problem, nullptr, 0, &needed), STROBE_INVALID_ARGUMENT);
  std::string text(needed, '?');
  ASSERT_EQ(strobe_problem_text(&problem, text.data(), text.size(), nullptr), STROBE_OK);
  EXPECT_STREQ(text.c_str(), "b1 sq5 h2 d8 fp32");
  EXPECT_STREQ(strobe_implementation_name(0), "flash");
  std::set<std::string> names;
  size_t count = 0;
  for (; const char* name = strobe_implementation_name(count); ++count) names.insert(name);
  EXPECT_EQ(names.size(), count) << "each can be asked for by its own";
  EXPECT_EQ(strobe_implementation_name(1000), nullptr);
  EXPECT_STREQ(strobe_version(), "0.1.0");
}

}  // namespace
