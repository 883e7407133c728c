#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiment/experiment.h"

// Who takes part in an experiment, and how large it may be.
namespace strobe::lab {

/// The two answers to every question here. Throw Unsupported or InvalidArgument if there is none on
/// that device, which is so for the unfused one where cuBLAS is missing.
const Implementation& flash_on(Device device);
const Implementation& unfused_on(Device device);

/// Bytes that a pass takes: the operands and what the plan asks for. Takes no memory itself.
std::int64_t planned_bytes(const Implementation& implementation, const Problem& problem,
                           const PlanOptions& options);

/// What an experiment may take at once: the limit that was asked for, or four fifths of what is
/// free on the device and, for operands lie there too, on the host.
std::int64_t memory_budget(const ExperimentSetup& setup);

/// The largest of `usual` and the same with fewer sequences, then heads, for which `bytes` is
/// within the budget, with what users say in place of it. Throws OutOfMemory that says how much it
/// takes if theirs is not.
Problem fitting_problem(const ExperimentSetup& setup, Problem usual,
                        const std::function<std::int64_t(const Problem&)>& bytes);

/// Times both on one pass of a problem, in turns, and judges what they compute.
std::vector<Benchmark> time_rivals(const ExperimentSetup& setup,
                                   const std::vector<const Implementation*>& rivals,
                                   const Problem& problem);

/// The first of them that has no times stops an experiment. Throws Error with its reason.
void require_timed(const std::vector<Benchmark>& results);

/// "b1 sq1024 h8 d64 fp32 on the CPU"
std::string subject_text(const ExperimentSetup& setup, const Problem& problem);

/// Whether `slower` takes longer than `faster` for sure: undecided where their intervals overlap,
/// or there are too few samples for one.
Conclusion is_faster(const Benchmark& faster, const Benchmark& slower);

}  // namespace strobe::lab
