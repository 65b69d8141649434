#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"
#include "backends/backends.h"
#include "base/bf16.h"
#include "base/f16.h"
#include "program/builder.h"
#include "support/no_inputs.h"

namespace harness::test {

/// Runs one operation on one rank: buffers are set from doubles, the operation runs through the whole backend, results
/// come back as doubles.
class Rig {
 public:
  explicit Rig(program::DType type = program::DType::f32, int threads = 2) : type_(type), threads_(threads) {}

  program::View tensor(const std::vector<double>& values) { return make(type_, values); }
  program::View f32(const std::vector<double>& values) { return make(program::DType::f32, values); }
  program::View typed(program::DType type, const std::vector<double>& values) { return make(type, values); }
  program::View i32(const std::vector<double>& values) { return make(program::DType::i32, values); }
  /// To be written only: full of NaN.
  program::View output(std::int64_t count) { return make(type_, std::vector<double>(count, NAN)); }
  program::View output_f32(std::int64_t count) { return make(program::DType::f32, std::vector<double>(count, NAN)); }

  void run(const program::Action& action, const program::Layout& layout = {}, int rank = 0, std::uint64_t seed = 1) {
    builder_.begin_step();
    builder_.emit(0, action, {});
    program_ = builder_.take();
    backend::ExecutableRequest request;
    request.program = &program_;
    request.layout = layout;
    request.rank = rank;
    request.seed = seed;
    request.threads = threads_;
    executable_ = backends::get(config::BackendKind::cpu).create(request);
    executable_->publish();
    executable_->connect({}, 1);
    executable_->initialize();
    for (const auto& [view, values] : initial_) put(view, values);
    executable_->run(0, 1, NoInputs{});
  }

  /// The numbers of a buffer after rounding to its type: the operation reads these.
  std::vector<double> rounded(const program::View& view) const {
    for (const auto& [v, values] : initial_) {
      if (v == view) {
        std::vector<double> out;
        for (const double x : values) out.push_back(round(type_of(view), x));
        return out;
      }
    }
    return {};
  }

  std::vector<double> get(const program::View& view) const {
    const std::size_t n = view.count;
    const program::DType type = program_.buffers[view.buffer].type;
    std::vector<std::byte> bytes(n * program::size_of(type));
    executable_->read(view, bytes);
    std::vector<double> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (type == program::DType::f32) out[i] = reinterpret_cast<const float*>(bytes.data())[i];
      if (type == program::DType::bf16) out[i] = to_float(reinterpret_cast<const bf16*>(bytes.data())[i]);
      if (type == program::DType::f16) out[i] = to_float(reinterpret_cast<const f16*>(bytes.data())[i]);
      if (type == program::DType::i32) out[i] = reinterpret_cast<const std::int32_t*>(bytes.data())[i];
    }
    return out;
  }

  static std::uint8_t code(program::DType type, float x) {
    return nearest_fp8(backend::fp8_format(type), std::bit_cast<std::uint32_t>(x));
  }
  static double round(program::DType type, double x) {
    const auto f = static_cast<float>(x);
    if (program::is_fp8(type)) return fp8_to_float(backend::fp8_format(type), code(type, f));
    if (type == program::DType::f16) return static_cast<double>(to_float(to_f16(f)));
    return type == program::DType::bf16 ? static_cast<double>(to_float(to_bf16(f))) : static_cast<double>(f);
  }
  program::DType type() const { return type_; }
  /// How far results in this type may lie from the exact ones, relative to the largest.
  double tolerance() const {
    if (type_ == program::DType::f32) return 2e-6;
    return type_ == program::DType::bf16 ? 8e-3 : 1e-3;
  }

 private:
  program::DType type_of(const program::View& v) const { return types_[v.buffer]; }

  program::View make(program::DType type, const std::vector<double>& values) {
    const program::View v = builder_.buffer("b" + std::to_string(initial_.size()), type,
                                            static_cast<std::int64_t>(values.size()), program::BufferKind::persistent);
    initial_.emplace_back(v, values);
    types_.push_back(type);
    return v;
  }

  void put(const program::View& view, const std::vector<double>& values) {
    std::vector<std::byte> bytes;
    for (const double x : values) {
      const auto append = [&](auto y) {
        const auto* p = reinterpret_cast<const std::byte*>(&y);
        bytes.insert(bytes.end(), p, p + sizeof y);
      };
      const program::DType type = type_of(view);
      if (type == program::DType::f32) append(static_cast<float>(x));
      if (type == program::DType::bf16) append(to_bf16(static_cast<float>(x)));
      if (type == program::DType::f16) append(to_f16(static_cast<float>(x)));
      if (type == program::DType::i32) append(static_cast<std::int32_t>(x));
      if (program::is_fp8(type)) append(code(type, static_cast<float>(x)));
    }
    executable_->write(view, bytes);
  }

  program::DType type_;
  int threads_;
  program::ProgramBuilder builder_{{"compute"}};
  std::vector<std::pair<program::View, std::vector<double>>> initial_;
  std::vector<program::DType> types_;
  program::Program program_;
  std::unique_ptr<backend::Executable> executable_;
};

inline std::vector<double> random_values(std::int64_t n, unsigned seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> out(n);
  for (double& x : out) x = normal(generator);
  return out;
}

/// The largest difference relative to the largest expected value.
inline double error(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, scale = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(got[i] - want[i]));
    scale = std::max(scale, std::abs(want[i]));
  }
  return difference / scale;
}

/// GELU in its approximation by tanh, in double precision.
inline double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Tests that run for all element types that products have.
class PerType : public ::testing::TestWithParam<program::DType> {};
inline auto all_types() {
  return ::testing::Values(program::DType::f32, program::DType::bf16, program::DType::f16);
}
inline std::string type_name(const ::testing::TestParamInfo<program::DType>& info) {
  return std::string(program::name_of(info.param));
}

}  // namespace harness::test
