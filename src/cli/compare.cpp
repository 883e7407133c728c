#include "cli/compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/product_beside.h"
#include "measure/roofline.h"
#include "report/table.h"
#include "report/text.h"
#include "strobe/cuda.h"
#include "strobe/error.h"
#include "strobe/machine.h"

namespace strobe::cli {
namespace {

lab::SamplingPolicy policy(const CompareOptions& options) {
  return options.quick ? options.sampling.quick_policy() : options.sampling.policy();
}

/// What --also takes.
const std::vector<std::string> kModes = {"deterministic", "tf32", "running", "fixed"};

PlanOptions in_mode(PlanOptions options, const std::string& mode) {
  if (mode == "deterministic") {
    options.deterministic = true;
  } else if (mode == "tf32") {
    options.tf32 = true;
  } else {
    options.reference = *parse_softmax_reference(mode);
  }
  return options;
}

/// How the ways to compute that --also asks for differ from the usual one: " deterministic", or "".
std::string mode_text(const PlanOptions& options, const PlanOptions& usual) {
  std::string text;
  if (options.deterministic != usual.deterministic) text += " deterministic";
  if (options.tf32 != usual.tf32) text += " tf32";
  if (options.reference != usual.reference) text += fmt::format(" {}", name_of(options.reference));
  return text;
}

/// Every implementation in the usual way, and in each mode that is another one.
std::vector<lab::Entrant> entrants_of(const Implementations& implementations,
                                      const CompareOptions& options) {
  const PlanOptions usual = options.run.plan();
  std::vector<PlanOptions> ways = {usual};
  for (auto mode = options.also.begin(); mode != options.also.end(); ++mode) {
    if (std::find(options.also.begin(), mode, *mode) != mode)
      throw InvalidArgument("--also", fmt::format("has '{}' twice; leave one of them out", *mode));
    ways.push_back(in_mode(usual, *mode));
    if (mode_text(ways.back(), usual).empty()) {
      throw InvalidArgument("--also",
                            fmt::format("is '{}', which all are by the other options; leave it out "
                                        "of one of them",
                                        *mode));
    }
  }
  std::vector<lab::Entrant> entrants;
  for (const Implementation* implementation : implementations) {
    for (const PlanOptions& way : ways) entrants.push_back({implementation, way});
  }
  return entrants;
}

/// The implementation that the others' speed is told against: the one asked for if it may win, else
/// the last one that may. In the usual way, unless none may in that. Null if none may at all.
const lab::Benchmark* base_of(const Results& results, const PlanOptions& usual,
                              const std::string& name) {
  const lab::Benchmark* base = nullptr;
  for (const lab::Benchmark& b : results) {
    const bool is_usual = mode_text(b.options, usual).empty();
    if (!b.may_win() || (base != nullptr && !is_usual)) continue;
    base = &b;
    if (b.implementation == name) break;
  }
  return base;
}

/// What a row begins with: who, how long, how certain, how fast, and as which part of the roof.
std::vector<std::string> timed_cells(const std::string& name, const lab::Statistics& ms,
                                     double rate, double roof) {
  return {name, fmt::format("{:.3f}", ms.median),
          ms.ci95 ? fmt::format("{:.1f} %", 100 * ms.relative_uncertainty()) : "-",
          fmt::format("{:.4f}", rate / 1e12),
          roof > 0 ? fmt::format("{:.0f} %", 100 * rate / roof) : "-"};
}

std::vector<std::string> row_of(const lab::Benchmark& b, const std::string& name,
                                const lab::Benchmark* base, const lab::Peaks& peaks) {
  if (!b.timed()) return {name, std::string(lab::name_of(b.status)), "", "", "", "", "", "", ""};
  const lab::Statistics& ms = b.measurement.ms;
  auto cells = timed_cells(name, ms, b.flops_per_second(ms.median),
                           lab::roofline(b, peaks).flops_per_second());
  cells.push_back(fmt::format("{:.1f}", static_cast<double>(b.memory.peak()) / 1e6));
  cells.push_back(b.accuracy.measured ? lab::error_text(b.accuracy.max_error) : "-");
  cells.emplace_back(lab::name_of(b.accuracy.verdict));
  cells.push_back(b.may_win() ? fmt::format("{:.2f}x", base->measurement.ms.median / ms.median)
                              : "-");
  return cells;
}

/// It is not compared: no memory, no error, no speed-up.
std::vector<std::string> row_of(const lab::ProductResult& product, const std::string& name,
                                double peak) {
  auto cells = timed_cells(name, product.ms, product.flops_per_second(product.ms.median), peak);
  cells.insert(cells.end(), 4, "");
  return cells;
}

/// The result that may win with the least of something.
template <class Key>
Results::const_iterator least(const Results& results, const Key& key) {
  return std::min_element(results.begin(), results.end(), [&](const auto& a, const auto& b) {
    return a.may_win() != b.may_win() ? a.may_win() : key(a) < key(b);
  });
}

void print_results(std::FILE* text, const Results& results, const PlanOptions& usual,
                   const std::string& base_name, const ProductBeside& beside,
                   const lab::Peaks& peaks) {
  constexpr auto kRight = lab::Align::right;
  lab::Table table({{"Implementation"},
                    {"Time (ms)", kRight},
                    {"+/-", kRight},
                    {"TFLOP/s", kRight},
                    {"Roofline", kRight},
                    {"Memory (MB)", kRight},
                    {"Max error", kRight},
                    {"Check"},
                    {"Speed-up", kRight}});
  const lab::Benchmark* base = base_of(results, usual, base_name);
  const auto name = [&usual](const lab::Benchmark& b) {
    return b.implementation + mode_text(b.options, usual);
  };
  for (const lab::Benchmark& b : results) table.add_row(row_of(b, name(b), base, peaks));
  const auto& product = results.front().product;
  const double peak = lab::roofline(results.front(), peaks).peak_flops;
  if (product) table.add_row(row_of(*product, beside.name(), peak));
  fmt::print(text, "{}\n{}", results.front().problem.text(), table.render());
  if (product) fmt::print(text, "The {} is by {}.\n", beside.name(), product->library);
  if (!beside.reason().empty())
    fmt::print(text, "{}\n", lab::reason_text(beside.name(), beside.reason()));
  for (const lab::Benchmark& b : results) {
    if (!b.reason.empty()) fmt::print(text, "{}\n", lab::reason_text(name(b), b.reason));
  }
  if (base != nullptr) {
    const auto fastest = least(results, [](const auto& b) { return b.measurement.ms.median; });
    const auto leanest = least(results, [](const auto& b) { return b.memory.peak(); });
    fmt::print(text, "Fastest: {} ({:.3f} ms). Lowest memory: {} ({}).\n", name(*fastest),
               fastest->measurement.ms.median, name(*leanest),
               lab::bytes_text(leanest->memory.peak()));
  }
  fmt::print(text, "\n");
  std::fflush(text);
}

Results compare_on(const Problem& problem, const std::vector<lab::Entrant>& entrants,
                   const CompareOptions& options, const lab::ProductTrial* product) {
  try {
    lab::Operands operands({.problem = problem});
    const lab::SpotCheck check(operands, problem.pass);
    return lab::benchmark(entrants, operands, problem.pass, &check, policy(options), product);
  } catch (const OutOfMemory& error) {
    Results rows;
    for (const auto& [implementation, way] : entrants)
      rows.push_back(lab::without_operands(*implementation, problem, way, error));
    return rows;
  }
}

int exit_status(const std::vector<Results>& all) {
  bool anything = false;
  for (const Results& results : all) {
    for (const lab::Benchmark& b : results) {
      if (b.status == lab::Status::failed) return kCheckFailed;
      anything = anything || b.status == lab::Status::ok;
    }
  }
  return anything ? kDone : kNotPossible;
}

/// What was asked for; else, on the CPU the three worth a comparison, on GPUs all there are, and
/// every guest. The last of ours stays the last, for speed is told against it.
Implementations choose_implementations(const CompareOptions& options,
                                       const std::vector<Problem>& problems) {
  if (!options.implementations.empty()) return options.run.find(options.implementations);
  Implementations guests = options.run.all();
  std::erase_if(guests, [&](const Implementation* each) {
    return each->device() != options.run.kind() || !each->habits().guest;
  });
  const bool cpu = options.run.kind() == Device::Kind::cpu;
  Implementations all = cpu ? options.run.find({"flash", "gemm", "standard"}) : options.run.all();
  std::erase_if(all, [](const Implementation* each) { return each->habits().guest; });
  all.insert(all.end() - 1, guests.begin(), guests.end());
  return useful_among(all, problems, options.run.plan());
}

/// The full name of the one that --base names.
std::string choose_base(const CompareOptions& options, const Implementations& implementations) {
  if (options.base.empty()) return "";
  std::vector<std::string> names;
  for (const Implementation* implementation : implementations) {
    names.push_back(full_name(*implementation));
    if (names.back() == options.base ||
        (options.run.device && implementation->name() == options.base))
      return names.back();
  }
  throw InvalidArgument("--base", fmt::format("is '{}', allowed is one of those compared: {}",
                                              options.base, fmt::join(names, ", ")));
}

}  // namespace

std::string hardware_text(const lab::Peaks& peaks) {
  const auto measured = [&peaks](DType dtype) -> std::string {
    const auto rate = peaks.flops_per_second.find(dtype);
    if (rate == peaks.flops_per_second.end()) return "its peaks could not be measured";
    return fmt::format("measured: {} {:.4g} TFLOP/s, memory {:.4g} GB/s", name_of(dtype),
                       rate->second / 1e12, peaks.memory_bytes_per_second() / 1e9);
  };
  if (peaks.device.kind != Device::Kind::cpu) {
    const CudaStatus status = cuda_status();
    if (!status.unavailable.empty())
      return fmt::format("{}, which cannot be used: {}", to_string(peaks.device),
                         status.unavailable);
    const CudaDevice& gpu = status.devices.at(static_cast<std::size_t>(peaks.device.index));
    return fmt::format("{}, {}, {}; {}", to_string(peaks.device), gpu.name, gpu.architecture,
                       measured(DType::bf16));
  }
  const Machine here = machine();
  return fmt::format("{}, {} threads, {}; {}", here.cpu, peaks.threads, here.isa,
                     measured(DType::fp32));
}

std::vector<Results> compare(const CompareOptions& options) {
  options.run.require_device();
  const std::vector<Problem> problems = options.problems.choose();
  const Implementations implementations = choose_implementations(options, problems);
  const std::vector<lab::Entrant> entrants = entrants_of(implementations, options);
  const std::string base = choose_base(options, implementations);
  ProductBeside beside(options.product, entrants);
  lab::RecordWriter records = options.output.records();
  std::FILE* text = options.output.text();
  const lab::Peaks peaks =
      lab::peaks_of(options.run.device_of(implementations), options.run.threads);
  fmt::print(text, "{}\n\n", hardware_text(peaks));
  std::vector<Results> all;
  Progress progress(problems.size(), !options.output.quiet);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    progress.show(i, problems[i].text());
    all.push_back(compare_on(problems[i], entrants, options, beside.of(problems[i].dtype)));
    for (const lab::Benchmark& b : all.back()) records.write(b, peaks);
    progress.clear();
    print_results(text, all.back(), options.run.plan(), base, beside, peaks);
    if (options.output.quiet) continue;
    for (const lab::Benchmark& b : all.back()) {
      warn_of_slowdown(b);
      warn_of_low_peak(b, peaks);
    }
  }
  return all;
}

void add_compare(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "compare", "Several implementations on the same problems: time, memory, error, the winner");
  auto o = std::make_shared<CompareOptions>();
  o->problems.add_to(*command);
  command
      ->add_option("--impl", o->implementations,
                   "Implementations, with commas; by default flash, gemm where it runs, standard, "
                   "or with --device cuda all there are for GPUs; from Python also its peers")
      ->delimiter(',')
      ->type_name("NAME");
  command
      ->add_option("--also", o->also,
                   "Modes, with commas, in which each is timed once more, in turns with the usual "
                   "one: deterministic, tf32, or a --reference, running or fixed")
      ->delimiter(',')
      ->check(CLI::IsMember(kModes))
      ->type_name("MODE");
  command
      ->add_option("--base", o->base,
                   "The one that speed-ups are told against; the last that is right if not given")
      ->type_name("NAME");
  command
      ->add_option("--product", o->product,
                   "Also time the product of two N x N matrices of the problem's dtype by the "
                   "device's own library, cuBLAS, oneDNN or OpenBLAS, in turns with the others")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  o->run.add_to(*command);
  o->sampling.add_to(*command);
  SamplingOptions::add_quick_to(*command, o->quick, "Few samples: done in seconds");
  o->sampling.add_pinning_to(*command);
  o->output.add_to(*command);
  o->output.add_quiet_to(*command);
  command->footer(
      "Without a problem, a representative set is compared.\n\n"
      "Example:\n  strobe compare --quick --problem \"b1 s512 h4 d64 fp32 causal\"");
  command->callback([&status, o] { status = exit_status(compare(*o)); });
}

}  // namespace strobe::cli
