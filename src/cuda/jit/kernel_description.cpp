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
  std::string operator()(const Enumerator& value) const {
    return concat("constexpr ", value.type, " ", name, " = ", value.type, "::", value.name, ";\n");
  }
};

struct Words {
  std::string operator()(int value) const { return concat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const TypeName& type) const { return type.name; }
  std::string operator()(const Enumerator& value) const { return value.name; }
};

/// What must be included to know the constant; "" for nothing.
struct Header {
  std::string operator()(int) const { return ""; }
  std::string operator()(bool) const { return ""; }
  std::string operator()(const TypeName& type) const { return type.header; }
  std::string operator()(const Enumerator& value) const { return value.header; }
};

}  // namespace

std::string config_header(const KernelDescription& kernel) {
  std::set<std::string> headers;
  std::string definitions;
  for (const Constant& constant : all_constants(kernel)) {
    const std::string header = std::visit(Header{}, constant.value);
    if (!header.empty()) headers.insert(header);
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
    if (const bool* flag = std::get_if<bool>(&constant.value)) {
      if (*flag) words.push_back(constant.name);
    } else {
      words.push_back(concat(constant.name, " ", std::visit(Words{}, constant.value)));
    }
  }
  return joined(words, ", ");
}

}  // namespace strobe::cuda::jit
