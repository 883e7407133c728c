// A stand-in for NVRTC that makes a shared library of a kernel, for driver.cpp, with the compiler
// that built the tests: the kernel's own source and headers, but for those of runtime/.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

enum class Result : int { success = 0, internal = 5, compilation = 6 };

struct ProgramObject {
  std::string text{};
  std::string name{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string log{};
  std::string library{};
};

namespace {

constexpr std::array kArchitectures = {80, 86, 87, 89, 90};

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// The kernels of a source: extern "C" __global__ void ... name(
std::vector<std::string> entries_of(const std::string& text) {
  const std::regex entry(
      R"(extern\s+"C"\s+__global__\s+void(?:\s+__launch_bounds__\([^)]*\))?\s+(\w+)\s*\()");
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), entry), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

/// Shared memory whose size the launch says is a pointer here; every kernel can be bound to its
/// parameters by name. Nothing stands before cuda.h, which may have been compiled ahead.
std::string host_text(const std::string& kernel, const std::string& architecture,
                      const std::vector<std::string>& entries) {
  const std::regex dynamic_shared(
      R"(extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(\w+)\s+(\w+)\[\];)");
  std::string text =
      "#include \"cuda.h\"\n#define __CUDA_ARCH__ " + architecture + "\n" +
      std::regex_replace(
          kernel, dynamic_shared,
          "$1* const $2 = reinterpret_cast<$1*>(emulated::Block::current->shared_begin());");
  const bool in_namespace = kernel.find("\nnamespace strobe::cuda {") != std::string::npos;
  const std::string scope = in_namespace ? "strobe::cuda::" : "::";
  for (const std::string& name : entries) {
    text += "\nextern \"C\" emulated::Call* emulated_" + name +
            "(void** parameters) { return emulated::bind(" + scope + name + ", parameters); }\n";
  }
  return text;
}

/// Returns what the compiler says, and whether it succeeded.
std::pair<std::string, bool> run(const std::string& command) {
  std::string said;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"cannot run " + command, false};
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    said.append(piece.data(), count);
  }
  return {said, pclose(pipe) == 0};
}

/// The value of an option such as --gpu-architecture=sm_90a, as __CUDA_ARCH__ has it.
std::string architecture_macro(int count, const char* const* options) {
  constexpr const char* kOption = "--gpu-architecture=sm_";
  for (int i = 0; i < count; ++i) {
    if (std::strncmp(options[i], kOption, std::strlen(kOption)) == 0) {
      return std::to_string(std::atoi(options[i] + std::strlen(kOption)) * 10);
    }
  }
  return "800";
}

Result compile(ProgramObject& program, const std::string& architecture) {
  std::string pattern = (fs::temp_directory_path() / "emulated_kernel.XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  const std::vector<std::string> entries = entries_of(program.text);
  for (const auto& [name, text] : program.headers) {
    if (!fs::exists(fs::path(EMULATED_RUNTIME) / name)) write(folder / name, text);
  }
  write(folder / "kernel.cpp", host_text(program.text, architecture, entries));
  const auto [said, succeeded] =
      run(EMULATED_COMPILER " -shared -I" EMULATED_COMPILED_AHEAD " -I" EMULATED_RUNTIME " -I" +
          folder.string() + " " + (folder / "kernel.cpp").string() + " -o " +
          (folder / "kernel.so").string());
  if (succeeded) program.library = read(folder / "kernel.so");
  program.log = said;
  for (const std::string& name : entries) {
    program.log += "ptxas info    : Compiling entry function '" + name + "'\n";
  }
  fs::remove_all(folder);
  return succeeded ? Result::success : Result::compilation;
}

}  // namespace

extern "C" {

Result nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = EMULATED_VERSION;
  return Result::success;
}
Result nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(kArchitectures.size());
  return Result::success;
}
Result nvrtcGetSupportedArchs(int* to) {
  std::copy(kArchitectures.begin(), kArchitectures.end(), to);
  return Result::success;
}
Result nvrtcCreateProgram(ProgramObject** program, const char* text, const char* name, int count,
                          const char* const* headers, const char* const* names) {
  *program = new ProgramObject{.text = text, .name = name};
  for (int i = 0; i < count; ++i) (*program)->headers.emplace_back(names[i], headers[i]);
  return Result::success;
}
Result nvrtcDestroyProgram(ProgramObject** program) {
  delete *program;
  *program = nullptr;
  return Result::success;
}
Result nvrtcCompileProgram(ProgramObject* program, int count, const char* const* options) {
  try {
    return compile(*program, architecture_macro(count, options));
  } catch (const std::exception& error) {
    program->log = error.what();
    return Result::internal;
  }
}
Result nvrtcGetProgramLogSize(ProgramObject* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return Result::success;
}
Result nvrtcGetProgramLog(ProgramObject* program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return Result::success;
}
Result nvrtcGetCUBINSize(ProgramObject* program, std::size_t* bytes) {
  *bytes = program->library.size();
  return Result::success;
}
Result nvrtcGetCUBIN(ProgramObject* program, char* to) {
  std::memcpy(to, program->library.data(), program->library.size());
  return Result::success;
}

}  // extern "C"
