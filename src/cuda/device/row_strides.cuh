#pragma once

namespace strobe::cuda {

/// Elements from one sequence, row and head to the next. Where sequences are packed, that of a
/// sequence is 0 and rows count through the batch.
struct RowStrides {
  long long sequence;
  long long row;
  long long head;
};

}  // namespace strobe::cuda
