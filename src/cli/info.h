#pragma once

#include "cli/options.h"

// `strobe info`, for commands that have a part of it in theirs.
namespace strobe::cli {

struct InfoOptions {
  int threads = 0;
  bool measure = false;
  OutputOptions output{};
};

/// This machine as strobe sees it, and what it can run. Returns the exit status.
int info(const InfoOptions& options);

}  // namespace strobe::cli
