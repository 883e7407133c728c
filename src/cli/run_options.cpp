#include "cli/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>

#include "cli/options.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/registry.h"

namespace strobe::cli {
namespace {

Device parse_device(const std::string& text) {
  constexpr std::string_view kNumbered = "cuda:";
  if (text == "cpu") return {};
  if (text == "cuda") return {.kind = Device::Kind::cuda};
  int index = -1;
  if (text.starts_with(kNumbered)) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + kNumbered.size(), end, index);
    if (read.ec != std::errc{} || read.ptr != end) index = -1;
  }
  if (index >= 0) return {.kind = Device::Kind::cuda, .index = index};
  throw InvalidArgument(
      "--device", fmt::format("is '{}', allowed is cpu, cuda or cuda:N, where N is the number that "
                              "strobe info gives a GPU",
                              text));
}

}  // namespace

void add_device(CLI::App& command, std::optional<Device>& device) {
  command
      .add_option_function<std::string>(
          "--device", [&device](const std::string& text) { device = parse_device(text); },
          "Implementations of this device alone: cpu, cuda (the first GPU) or cuda:N")
      ->type_name("NAME");
}

void RunOptions::add_to(CLI::App& command) {
  add_device(command, device);
  add_threads(command, threads);
  command.add_flag("--tf32", tf32,
                   "Let GPUs round fp32 to TF32 in products: faster, and as exact as fp16");
  command.add_flag("--deterministic", deterministic,
                   "Let the backward pass on GPUs give the same bits in every run");
  command
      .add_option(
          "--reference", reference,
          "What the forward pass of 16 bits on Hopper takes weights relative to: running, a "
          "row's largest logit so far; fixed, that of its first keys; or what is faster")
      ->check(CLI::IsMember({"automatic", "running", "fixed"}))
      ->capture_default_str();
}

CLI::Option* RunOptions::add_variant_to(CLI::App& command) {
  return command
      .add_option("--variant", variant,
                  "How to cut the problem, one of those that strobe tune --list shows; if not "
                  "given, as was tuned, else as usual")
      ->type_name("TEXT");
}

PlanOptions RunOptions::plan() const {
  return {.threads = threads,
          .device = where().index,
          .tf32 = tf32,
          .deterministic = deterministic,
          .reference = *parse_softmax_reference(reference),
          .variant = variant};
}

void RunOptions::require_device() const {
  if (kind() == Device::Kind::cpu) return;
  const CudaStatus status = cuda_status();
  if (!status.unavailable.empty()) {
    throw Error(fmt::format("--device is {}, but no GPU can be used: {}", to_string(*device),
                            status.unavailable));
  }
  const auto count = static_cast<int>(status.devices.size());
  if (device->index < count) return;
  const std::string allowed =
      count == 1 ? "cuda:0, the only GPU here" : fmt::format("cuda:0 to cuda:{}", count - 1);
  throw InvalidArgument("--device", fmt::format("is {}, allowed is {}; strobe info lists the GPUs",
                                                to_string(*device), allowed));
}

bool RunOptions::allows(const Implementation& implementation) const {
  return !device || implementation.device() == kind();
}

Device RunOptions::device_of(const std::vector<const Implementation*>& implementations) const {
  if (device) return *device;
  const bool on_gpu =
      !implementations.empty() &&
      std::all_of(implementations.begin(), implementations.end(),
                  [](const Implementation* each) { return each->device() != Device::Kind::cpu; });
  return on_gpu ? Device{.kind = Device::Kind::cuda} : Device{};
}

std::vector<const Implementation*> RunOptions::all() const {
  std::vector<const Implementation*> all = Registry::instance().all();
  std::erase_if(all, [this](const Implementation* each) { return !allows(*each); });
  return all;
}

std::vector<const Implementation*> RunOptions::find(const std::vector<std::string>& names) const {
  std::vector<const Implementation*> found;
  for (const std::string& name : names) {
    const bool prefixed = kind() == Device::Kind::cpu || name.starts_with("cuda:");
    found.push_back(&Registry::instance().find(prefixed ? name : "cuda:" + name));
    if (allows(*found.back())) continue;
    throw InvalidArgument("--impl",
                          fmt::format("is '{}', which does not run on --device {}; leave the "
                                      "device out, or name an implementation that strobe list "
                                      "shows for it",
                                      name, to_string(*device)));
  }
  return found;
}

std::vector<const Implementation*> RunOptions::find_some(
    const std::vector<std::string>& names) const {
  if (kind() == Device::Kind::cpu) return find(names);
  std::vector<const Implementation*> some = all();
  const auto named = [&](const Implementation* each) {
    return std::count(names.begin(), names.end(), each->name()) > 0;
  };
  if (std::any_of(some.begin(), some.end(), named)) std::erase_if(some, std::not_fn(named));
  return some;
}

}  // namespace strobe::cli
