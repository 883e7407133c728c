#pragma once

#include <vector>

#include "verify/case.h"

namespace strobe::lab {

/// Cases small enough for every build that still show every value of every axis: head dims,
/// lengths, types, masks, features, head ratios, variable lengths, layouts and storage, in both
/// passes, and all of known_trouble().
std::vector<Case> quick_grid();

/// Every head dim with every pair of lengths in every type, the other axes dealt over them, and
/// every residue of the lengths up to 200. Thousands of cases, up to (2048, 2048) and (1, 131072).
std::vector<Case> full_grid();

/// Cases that broke other attention kernels, each kept here by name of what it is about.
std::vector<Case> known_trouble();

}  // namespace strobe::lab
