#pragma once

#include "base/bf16.h"
#include "base/error.h"
#include "program/view.h"

namespace harness::backend {

/// Where a view lies: an address in the backend's memory. Absent views have no data.
struct Tensor {
  void* data = nullptr;
  program::DType type = program::DType::f32;
  std::int64_t count = 0;

  bool present() const { return data != nullptr; }
  explicit operator bool() const { return present(); }
  std::int64_t bytes() const { return count * program::size_of(type); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  const std::int32_t* i32() const { return as<const std::int32_t>(); }
};

/// Calls f with a float or bf16 (by value, as a tag) according to the type. No backend computes in f16 yet.
template <class F>
void with_type(program::DType type, F&& f) {
  switch (type) {
    case program::DType::f32:
      return f(float{});
    case program::DType::bf16:
      return f(bf16{});
    case program::DType::i32:
    case program::DType::f16:
      break;
  }
  throw Error("there is no arithmetic on i32 and f16 buffers");
}

}  // namespace harness::backend
