#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strobe/implementation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace strobe::cli {

/// --device, for commands that look at implementations. "cpu", "cuda" or "cuda:N".
void add_device(CLI::App& command, std::optional<Device>& device);

/// Where implementations run and how they compute, for commands that plan.
struct RunOptions {
  std::optional<Device> device{};  ///< nothing: where the implementations asked for run
  int threads = 0;
  bool tf32 = false;
  bool deterministic = false;
  std::string reference = "automatic";
  std::string variant{};

  /// --device, --threads, --tf32, --deterministic and --reference.
  void add_to(CLI::App& command);

  /// --variant, for commands that look at one implementation.
  CLI::Option* add_variant_to(CLI::App& command);

  PlanOptions plan() const;

  /// The CPU if nothing else was asked for.
  Device where() const { return device.value_or(Device{}); }
  Device::Kind kind() const { return where().kind; }

  /// Throws InvalidArgument naming the GPUs there are if the one asked for is not among them, and
  /// Error with the reason if none can be used.
  void require_device() const;

  /// Whether it runs where was asked for: everything does if nothing was.
  bool allows(const Implementation& implementation) const;

  /// Where these run, for what is known of a device: where was asked for, else on the first GPU if
  /// all of them are for GPUs, else on the CPU.
  Device device_of(const std::vector<const Implementation*>& implementations) const;

  /// All that do.
  std::vector<const Implementation*> all() const;

  /// By their names, which may lack the device where --device says it. Throws InvalidArgument for
  /// one that there is not, or that runs elsewhere.
  std::vector<const Implementation*> find(const std::vector<std::string>& names) const;

  /// For names that were not asked for: of a GPU those that there are, or all if there are none.
  std::vector<const Implementation*> find_some(const std::vector<std::string>& names) const;
};

}  // namespace strobe::cli
