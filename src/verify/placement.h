#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/implementation.h"
#include "verify/buffer.h"
#include "verify/case.h"

namespace strobe::lab {

/// Memory with the name to blame it by.
struct Allocation {
  std::string name;
  Buffer buffer;
};

/// Turns the shapes of a case into tensors in memory, as its layout and storage say. What is
/// allocated belongs to the list given.
class Placement {
 public:
  Placement(const Case& what, std::vector<Allocation>& owners);

  /// q, k and v (or their gradients, with "d" before the names), packed if the problem says so.
  void sequences(const std::string& prefix, bool expand_keys, TensorView& q, TensorView& k,
                 TensorView& v);

  TensorView query_like(const char* name);  ///< [b, sq, h, dv]: the output and its gradient
  TensorView strided_dout();                ///< the same, but never contiguous
  TensorView lse();
  TensorView bias(const char* name);
  TensorView plain(const char* name, DType dtype, const std::vector<std::int64_t>& shape);
  TensorView offsets(const char* name, const std::vector<std::int64_t>& lengths);

 private:
  using Shape = std::vector<std::int64_t>;

  /// What a Storage means for one tensor.
  struct Arrangement {
    bool heads_outside = false;
    std::int64_t offset = 0;
    std::int64_t row_padding = 0;
    bool expanded = false;
  };

  Arrangement arrangement() const;
  Shape tokens(bool of_keys) const;
  TensorView place(const std::string& name, DType dtype, const Shape& shape,
                   const Arrangement& where);

  const Problem& problem_;
  Storage storage_;
  std::vector<Allocation>& owners_;
};

}  // namespace strobe::lab
