#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/bound.h"

namespace harness::test {

/// The elements of a tensor of any type, read and written as doubles: the operands of operations that are computed from
/// their definitions in program/operation.h alone.
class Numbers {
 public:
  class Element {
   public:
    Element(const backend::Tensor& tensor, std::int64_t i) : tensor_(tensor), i_(i) {}

    operator double() const {  // NOLINT(google-explicit-constructor): stands for the number
      switch (tensor_.type) {
        case program::DType::f32:
          return static_cast<double>(tensor_.f32()[i_]);
        case program::DType::bf16:
          return static_cast<double>(to_float(tensor_.as<const bf16>()[i_]));
        case program::DType::f16:
          return static_cast<double>(to_float(tensor_.as<const f16>()[i_]));
        case program::DType::i32:
          return static_cast<double>(tensor_.i32()[i_]);
        case program::DType::e4m3:
        case program::DType::e5m2:
          return static_cast<double>(
              fp8_to_float(backend::fp8_format(tensor_.type), tensor_.as<const std::uint8_t>()[i_]));
        case program::DType::e8m0: {
          const int code = tensor_.as<const std::uint8_t>()[i_];
          return code == 255 ? NAN : std::ldexp(1.0, code - 127);
        }
      }
      return NAN;
    }
    const Element& operator=(double x) const {
      const auto f = static_cast<float>(x);
      switch (tensor_.type) {
        case program::DType::f32:
          tensor_.f32()[i_] = f;
          break;
        case program::DType::bf16:
          tensor_.as<bf16>()[i_] = to_bf16(f);
          break;
        case program::DType::f16:
          tensor_.as<f16>()[i_] = to_f16(f);
          break;
        case program::DType::i32:
          tensor_.as<std::int32_t>()[i_] = static_cast<std::int32_t>(x);
          break;
        case program::DType::e4m3:
        case program::DType::e5m2:
          tensor_.as<std::uint8_t>()[i_] =
              nearest_fp8(backend::fp8_format(tensor_.type), std::bit_cast<std::uint32_t>(f));
          break;
        case program::DType::e8m0:
          tensor_.as<std::uint8_t>()[i_] = static_cast<std::uint8_t>(std::isnan(x) ? 255 : std::ilogb(x) + 127);
          break;
      }
      return *this;
    }
    const Element& operator=(const Element& other) const { return *this = static_cast<double>(other); }
    const Element& operator+=(double x) const { return *this = *this + x; }

   private:
    const backend::Tensor tensor_;
    const std::int64_t i_;
  };

  Numbers() = default;
  explicit Numbers(const backend::Tensor& tensor) : tensor_(tensor) {}

  bool present() const { return tensor_.present(); }
  std::int64_t count() const { return tensor_.count; }
  program::DType type() const { return tensor_.type; }
  Element operator[](std::int64_t i) const { return {tensor_, i}; }
  /// An element of an i32 tensor, exactly.
  std::int64_t whole(std::int64_t i) const { return tensor_.i32()[i]; }

  void fill(double x) const {
    for (std::int64_t i = 0; i < count(); ++i) (*this)[i] = x;
  }
  std::vector<double> copy() const { return part(0, count()); }
  std::vector<double> part(std::int64_t first, std::int64_t n) const {
    std::vector<double> out;
    for (std::int64_t i = first; i < first + n; ++i) out.push_back((*this)[i]);
    return out;
  }

 private:
  backend::Tensor tensor_;
};

/// Tests that run for several element types.
class PerType : public ::testing::TestWithParam<program::DType> {
 protected:
  program::DType type() const { return GetParam(); }
};
inline std::string type_name(const ::testing::TestParamInfo<program::DType>& info) {
  return std::string(program::name_of(info.param));
}

}  // namespace harness::test
