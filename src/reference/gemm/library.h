#pragma once

#include <cstdint>
#include <string>

// The libraries whose matrix products are used, found when they are first asked for: one build
// serves machines with and without them.
namespace strobe::reference::gemm {

/// A matrix as it lies in memory, row-major.
struct Operand {
  const void* data = nullptr;
  std::int64_t stride = 0;  // elements from one row to the next
  bool transposed = false;  // whether the product takes its transpose
};

/// out [rows, columns] = left [rows, depth] · right [depth, columns], added to what is there if
/// `accumulate`.
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  Operand left{}, right{};
  bool bf16 = false;  // the type of left and right, else float; sums are float
  bool accumulate = false;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  /// With its version: "oneDNN 2.6.3".
  virtual const std::string& name() const = 0;

  /// Whether products of bf16 are faster on this CPU than products of the same numbers as floats.
  virtual bool multiplies_bf16() const = 0;

  /// In the calling thread, and from any number of threads at once.
  virtual void multiply(const Product& product) const = 0;

  /// Around all products of a call: from then on they use no threads of their own.
  virtual void begin_call() const {}
  virtual void end_call() const {}

  /// Around some products of one thread, to the same end. Returns what end_thread is given back.
  virtual int begin_thread() const { return 0; }
  virtual void end_thread(int /*before*/) const {}
};

/// begin_call and end_call.
class Call {
 public:
  explicit Call(const Library& library) : library_(library) { library_.begin_call(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { library_.end_call(); }

 private:
  const Library& library_;
};

/// begin_thread and end_thread.
class ThreadOfCall {
 public:
  explicit ThreadOfCall(const Library& library)
      : library_(library), before_(library_.begin_thread()) {}
  ThreadOfCall(const ThreadOfCall&) = delete;
  ThreadOfCall& operator=(const ThreadOfCall&) = delete;
  ~ThreadOfCall() { library_.end_thread(before_); }

 private:
  const Library& library_;
  int before_;
};

/// The library to use, or a sentence that says why there is none.
struct Found {
  const Library* library = nullptr;
  std::string missing{};
};

/// The faster one of those installed, or the one that STROBE_GEMM_LIBRARY names.
Found find_library();

}  // namespace strobe::reference::gemm
