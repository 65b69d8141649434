#pragma once

#include <memory>
#include <new>
#include <vector>

#include "backend/numbers.h"
#include "base/random.h"

namespace harness::test {

/// Memory of one tensor, aligned like device memory and no more, so that AddressSanitizer finds reads past its end.
class Buffer {
 public:
  Buffer(program::DType type, std::int64_t count) : tensor_{nullptr, type, count} {
    const std::size_t bytes = tensor_.bytes();
    memory_.reset(static_cast<char*>(::operator new (bytes, std::align_val_t{16})));
    tensor_.data = memory_.get();
    std::fill_n(memory_.get(), bytes, static_cast<char>(0xff));  // NaN of either type
  }
  Buffer(const Buffer& other) : Buffer(other.tensor_.type, other.tensor_.count) {
    std::copy_n(other.memory_.get(), tensor_.bytes(), memory_.get());
  }

  backend::Tensor tensor() const { return tensor_; }
  operator backend::Tensor() const { return tensor_; }  // NOLINT(google-explicit-constructor): to pass it to kernels

  double operator[](std::int64_t i) const { return Numbers{tensor_}[i]; }
  void set(std::int64_t i, double value) { Numbers{tensor_}[i] = value; }

 private:
  struct Release {
    void operator()(char* p) const { ::operator delete (p, std::align_val_t{16}); }
  };
  backend::Tensor tensor_;
  std::unique_ptr<char, Release> memory_;
};

inline Buffer random(program::DType type, std::int64_t count, std::uint64_t seed, double deviation = 1,
                     double mean = 0) {
  Buffer buffer(type, count);
  for (std::int64_t i = 0; i < count; ++i) {
    buffer.set(i, mean + deviation * philox_normal(seed, static_cast<std::uint64_t>(i)));
  }
  return buffer;
}

/// f32 scratch of `count` elements.
struct Scratch {
  explicit Scratch(std::int64_t count) : buffer(program::DType::f32, count) {}
  operator float*() const { return buffer.tensor().f32(); }  // NOLINT(google-explicit-constructor)
  Buffer buffer;
};

/// Relative error that f32 arithmetic, or one rounding to bf16 more or less, explains.
inline double tolerance(program::DType type) {
  return type == program::DType::bf16 ? 1e-2 : 1e-5;
}

/// Checks for every element: |got - wanted| <= limit * (|wanted| + the root mean square of all wanted).
template <class Wanted>
::testing::AssertionResult close(const Buffer& got, const Wanted& wanted, double limit) {
  double squares = 0;
  const std::int64_t n = got.tensor().count;
  for (std::int64_t i = 0; i < n; ++i) {
    const double w = static_cast<double>(wanted[i]);
    squares += w * w;
  }
  const double usual = std::sqrt(squares / static_cast<double>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const double w = static_cast<double>(wanted[i]);
    if (!(std::abs(got[i] - w) <= limit * (std::abs(w) + usual))) {
      return ::testing::AssertionFailure() << "element " << i << " of " << n << " is " << got[i] << ", wanted " << w
                                           << " (root mean square " << usual << ", limit " << limit << ")";
    }
  }
  return ::testing::AssertionSuccess();
}

inline auto both_types() {
  return ::testing::Values(program::DType::f32, program::DType::bf16);
}

}  // namespace harness::test
