#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strobe/problem.h"
#include "workload/axis.h"

namespace strobe::lab {

/// One thing to measure: an implementation on a pass of a problem.
struct Point {
  Problem problem{};  ///< with its pass
  std::string implementation{};

  bool operator==(const Point&) const = default;

  /// "flash on b2 sq1024 h8 d64 fp32 bwd"
  std::string name() const;
};

/// Axes whose product is measured.
struct Grid {
  std::vector<Axis> axes{};  ///< at most one for a setting; the others have their defaults
  std::vector<Pass> passes{Pass::forward, Pass::backward};
  std::vector<std::string> implementations{"flash"};
};

/// Puts the axis in the place of the grid's axis of the same setting, or adds it.
void set_axis(Grid& grid, const Axis& axis);

/// The points of the grids, one grid after the other, none twice. Within a grid the settings vary
/// in the reverse of their order in settings(): what comes last there varies slowest, then headdim,
/// nheads, seqlen and, fastest of them, batch. For every problem come its passes and for every pass
/// the implementations, so that what shares its operands is side by side. Throws InvalidArgument
/// naming the option and the point for a combination that is no problem, and for far too many.
std::vector<Point> points_of(std::span<const Grid> grids);

/// The grid with sequences `by` times shorter. Throws InvalidArgument if there is a remainder, or
/// no length to divide.
Grid shortened(Grid grid, std::int64_t by);

/// Bytes that the operands of a point take.
std::int64_t operand_bytes(const Point& point);

/// Throws InvalidArgument naming the largest point if its operands need more than `available`
/// bytes; 0 is not known and allows everything.
void require_memory(std::span<const Point> points, std::int64_t available);

}  // namespace strobe::lab
