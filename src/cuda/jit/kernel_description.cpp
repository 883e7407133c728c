#include "cuda/jit/kernel_description.h"

#include <set>

#include "core/text.h"

namespace strobe::cuda::jit {
namespace {

/// With those that every kernel has.
Constants all_constants(const KernelDescription& kernel) {
  Constants all = kernel.constants;
  all.push_back({"kThreads", kernel.threads});
  all.push_back({"kDynamicSharedBytes", kernel.dynamic_shared_bytes});
  return all;
}

struct Definition {
  const std::string& name;

  std::string operator()(int value) const {
    return concat("constexpr int ", name, " = ", value, ";\n");
  }
  std::string operator()(bool value) const {
    return concat("constexpr bool ", name, " = ", value ? "true" : "false", ";\n");
  }
  std::string operator()(const TypeName& type) const {
    return concat("using ", name, " = ", type.name, ";\n");
  }
};

struct Words {
  std::string operator()(int value) const { return concat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const TypeName& type) const { return type.name; }
};

}  // namespace

std::string config_header(const KernelDescription& kernel) {
  std::set<std::string> headers;
  std::string definitions;
  for (const Constant& constant : all_constants(kernel)) {
    const auto* type = std::get_if<TypeName>(&constant.value);
    if (type != nullptr && !type->header.empty()) headers.insert(type->header);
    definitions += std::visit(Definition{constant.name}, constant.value);
  }
  std::string text = "#pragma once\n";
  for (const std::string& header : headers) text += concat("#include \"", header, "\"\n");
  return concat(text, "namespace config {\n", definitions, "}\n");
}

std::string configuration_text(const KernelDescription& kernel) {
  std::vector<std::string> words;
  for (const Constant& constant : all_constants(kernel)) {
    if (constant.name == "kDynamicSharedBytes" && kernel.dynamic_shared_bytes == 0) continue;
    words.push_back(concat(constant.name, " ", std::visit(Words{}, constant.value)));
  }
  return joined(words, ", ");
}

}  // namespace strobe::cuda::jit
