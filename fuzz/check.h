#pragma once

#include <cstdio>
#include <cstdlib>

/// A finding: says what does not hold and stops, which libFuzzer reports with the input.
inline void check(bool holds, const char* claim, const char* detail = "") {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s %s\n", claim, detail);
  std::abort();
}
