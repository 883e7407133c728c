#include "workload/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strobe/error.h"

namespace strobe::lab {
namespace {

constexpr Preset kPresets[] = {
    {"gpt2-small", "b8 sq1024 h12 d64 causal", false, "GPT-2 small, training"},
    {"gpt3-large", "b2 sq2048 h96 d128 causal", false, "GPT-3, training"},
    {"bert-base", "b16 sq512 h12 d64", false, "BERT base, an encoder"},
    {"bert-large", "b8 sq512 h16 d64", false, "BERT large, an encoder"},
    {"context-8k", "b1 sq8192 h8 d64", false, "one long text"},
    {"context-16k", "b1 sq16384 h8 d64", false, "one very long text"},
    {"batch-inference", "b32 sq512 h8 d64", true, "many short texts, forward only"},
    {"llm-4k", "b32 sq4096 h16 d128", false, "the load of a large language model"},
};

}  // namespace

std::span<const Preset> presets() {
  return kPresets;
}

const Preset& find_preset(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kPresets), std::end(kPresets),
                                         [&](const Preset& p) { return p.name == name; });
  if (found != std::end(kPresets)) return *found;
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  throw InvalidArgument("--preset",
                        fmt::format("is '{}', allowed is {}", name, fmt::join(names, ", ")));
}

Problem problem_of(const Preset& preset, DType dtype) {
  Problem problem = Problem::parse(preset.problem);
  problem.dtype = dtype;
  return problem;
}

std::vector<Problem> representative_problems() {
  std::vector<Problem> problems;
  for (const char* text :
       {"b2 sq1024 h8 d64 fp32", "b1 sq2048 h4 d128 fp32 causal",
        "b1 sq2048 h8 hk2 d64 bf16 causal", "b1 sq2048 h4 d64 fp16 causal w256:0",
        "lq512,77,900,300 h4 d64 bf16 causal", "b8 sq1 sk2048 h8 hk2 d128 bf16",
        "b1 sq256 h4 d64 fp32 causal bwd"}) {
    problems.push_back(Problem::parse(text));
  }
  return problems;
}

}  // namespace strobe::lab
