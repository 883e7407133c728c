#pragma once

#include <memory>
#include <string>

#include "strobe/implementation.h"

namespace strobe::lab {

/// Another build of libstrobe, loaded beside the one that this program is linked with, through its
/// C interface. So two builds can be timed in turns, which no two runs of two programs can.
class OtherBuild {
 public:
  /// Throws Error saying why the file cannot serve.
  explicit OtherBuild(const std::string& path);
  ~OtherBuild();

  /// One of its implementations, which must not outlive it. The names of both builds' are the same.
  std::unique_ptr<Implementation> implementation(const std::string& name) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

/// The file of the libstrobe that this program is linked with; "" if it has the engine within it.
std::string library_path();

}  // namespace strobe::lab
