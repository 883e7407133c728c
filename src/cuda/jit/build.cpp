#include "cuda/jit/build.h"

#include <algorithm>
#include <cstdlib>

#include "core/text.h"
#include "cuda/jit/hash.h"
#include "cuda/jit/known_compiler.h"
#include "cuda/jit/shared_work.h"
#include "cuda/warnings.h"
#include "strobe/trace.h"

namespace strobe::cuda::jit {
namespace {

using Clock = std::chrono::steady_clock;

bool with_line_info() {
  const char* const value = std::getenv("STROBE_CUDA_LINEINFO");
  return value != nullptr && std::string_view(value) == "1";
}

std::vector<std::string> compiler_options(const Architecture& architecture) {
  std::vector<std::string> options = {concat("--gpu-architecture=", architecture.text()),
                                      "--std=c++20", "--device-as-default-execution-space",
                                      "--ptxas-options=--verbose"};
  if (with_line_info()) options.emplace_back("--generate-line-info");
  return options;
}

Headers headers_of(const KernelDescription& kernel, std::string_view source) {
  return included_headers(source, {{"config.cuh", config_header(kernel)}});
}

/// "architecture sm_90a" and so on: what a key, and a compile error, say of a build.
std::string title(const KernelDescription& kernel, const Architecture& architecture,
                  const std::string& compiler_version) {
  return concat("kernel ", kernel.name, "\nconfiguration ", configuration_text(kernel),
                "\narchitecture ", architecture.text(), "\ncompiler NVRTC ", compiler_version,
                "\n");
}

std::string hash_of_all(std::string_view path, std::string_view source, const Headers& headers) {
  std::uint64_t all = hash_of(source, hash_of(path));
  for (const auto& [name, text] : headers) all = hash_of(text, hash_of(name, all));
  return hash_text(all);
}

std::vector<Resources> resources_of(const KernelDescription& kernel, const std::string& log) {
  std::vector<Resources> all = parse_assembler_log(log);
  for (const std::string& entry : kernel.entries) {
    if (std::none_of(all.begin(), all.end(),
                     [&](const Resources& r) { return r.entry == entry; })) {
      throw CompileError(concat("the source defines no kernel '", entry, "'\n", log));
    }
  }
  return all;
}

void tell_what(Span& span, const KernelDescription& kernel, const Architecture& architecture) {
  span.tell("kernel", kernel.name);
  span.tell("configuration", configuration_text(kernel));
  span.tell("architecture", architecture.text());
}

}  // namespace

Binary compile(const Nvrtc& compiler, const KernelDescription& kernel, std::string_view source,
               const Architecture& architecture) {
  Span span("cuda", "compile");
  if (span) tell_what(span, kernel, architecture);
  if (!compiler.knows(architecture.number())) {
    throw Unsupported(concat("NVRTC ", compiler.version()),
                      {concat("code for ", architecture.text(),
                              ", which a later version has; STROBE_NVRTC names another library")});
  }
  const std::string text(source);
  const Headers headers = headers_of(kernel, source);
  const auto compile_with = [&](std::vector<std::string> options) {
    return compiler.compile(
        {.text = text, .name = kernel.source, .headers = headers, .options = std::move(options)});
  };
  try {
    std::vector<std::string> options = compiler_options(architecture);
    Nvrtc::Output output = compile_with(options);
    if (parse_assembler_log(output.log).empty()) {
      // From a cache of the compiler's own, which keeps no logs.
      options.emplace_back("--no-cache");
      output = compile_with(options);
    }
    std::vector<Resources> resources = resources_of(kernel, output.log);
    return {.cubin = std::move(output.cubin), .resources = std::move(resources)};
  } catch (const CompileError& error) {
    throw CompileError(concat("a GPU kernel does not compile\n",
                              title(kernel, architecture, compiler.version()),
                              config_header(kernel), error.what()));
  }
}

std::string cache_key(const KernelDescription& kernel, std::string_view source,
                      const Architecture& architecture, const std::string& compiler_version) {
  return concat(title(kernel, architecture, compiler_version), "sources ",
                hash_of_all(kernel.source, source, headers_of(kernel, source)), "\noptions ",
                joined(compiler_options(architecture), " "), "\n");
}

std::string sources_text(std::string_view source_path) {
  const std::string_view source = embedded_source(source_path);
  return hash_of_all(source_path, source, included_headers(source, {}));
}

std::string key_line(const std::string& key, std::string_view name) {
  const std::string start = concat(name, " ");
  std::size_t at = key.starts_with(start) ? 0 : key.find(concat("\n", start));
  if (at == std::string::npos) return "";
  at += start.size() + (at > 0 ? 1 : 0);
  return key.substr(at, key.find('\n', at) - at);
}

namespace {

/// For the key, which is another if the compiler turns out to be another than was thought.
Built find_or_compile(const KernelDescription& kernel, std::string_view source,
                      const Architecture& architecture, const DiskCache& cache, std::string key) {
  const auto start = Clock::now();
  const auto find = [&] {
    Span span("cuda", "look in the disk cache");
    if (span) tell_what(span, kernel, architecture);
    auto found = cache.find(key);
    span.tell("found", std::int64_t{found ? 1 : 0});
    return found;
  };
  Built built;
  auto known = find();
  if (!known) {
    nvrtc();
    key = cache_key(kernel, source, architecture, compiler_version());
    known = find();
  }
  if (known) {
    built = {.binary = std::move(*known), .from_cache = true};
  } else {
    if (const std::string trouble = cache.unreadable(key); !trouble.empty()) warn(trouble);
    built.binary = compile(nvrtc(), kernel, source, architecture);
    if (const std::string trouble = cache.keep(key, built.binary); !trouble.empty()) warn(trouble);
  }
  built.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return built;
}

}  // namespace

Built build(const KernelDescription& kernel, std::string_view source,
            const Architecture& architecture, const DiskCache& cache) {
  // Equal GPUs need the same: who comes after finds it on the disk.
  static auto& going_on = *new SharedWork<Built>(SharedWork<Built>::Results::forgotten);
  const std::string key = cache_key(kernel, source, architecture, compiler_version());
  return going_on.get(concat(cache.folder().string(), "\n", key),
                      [&] { return find_or_compile(kernel, source, architecture, cache, key); });
}

Built build(const KernelDescription& kernel, const Architecture& architecture) {
  return build(kernel, embedded_source(kernel.source), architecture, user_cache());
}

}  // namespace strobe::cuda::jit
