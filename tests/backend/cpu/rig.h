#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/bf16.h"
#include "program/builder.h"

namespace harness::test {

class NoInputs : public InputSource {
 public:
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

/// Runs one operation on one rank: buffers are set from doubles, the operation runs through the whole backend, results
/// come back as doubles.
class Rig {
 public:
  explicit Rig(DType type = DType::f32, int threads = 2) : type_(type), threads_(threads) {}

  View tensor(const std::vector<double>& values) { return make(type_, values); }
  View f32(const std::vector<double>& values) { return make(DType::f32, values); }
  View i32(const std::vector<double>& values) { return make(DType::i32, values); }
  /// To be written only: full of NaN.
  View output(std::int64_t count) { return make(type_, std::vector<double>(static_cast<std::size_t>(count), NAN)); }
  View output_f32(std::int64_t count) {
    return make(DType::f32, std::vector<double>(static_cast<std::size_t>(count), NAN));
  }

  void run(const Action& action, const Layout& layout = {}, int rank = 0, std::uint64_t seed = 1) {
    builder_.begin_step();
    builder_.emit(0, action, {});
    program_ = builder_.take();
    ExecutableRequest request;
    request.program = &program_;
    request.layout = layout;
    request.rank = rank;
    request.seed = seed;
    request.threads = threads_;
    executable_ = backend(BackendKind::cpu).create(request);
    executable_->publish();
    executable_->connect({}, 1);
    executable_->initialize();
    for (const auto& [view, values] : initial_) put(view, values);
    executable_->run(0, 1, NoInputs{});
  }

  /// What the buffer holds after rounding to its type: what the operation really read.
  std::vector<double> rounded(const View& view) const {
    for (const auto& [v, values] : initial_) {
      if (v == view) {
        std::vector<double> out;
        for (const double x : values) out.push_back(round(type_of(view), x));
        return out;
      }
    }
    return {};
  }

  std::vector<double> get(const View& view) const {
    const auto n = static_cast<std::size_t>(view.count);
    const DType type = program_.buffers[static_cast<std::size_t>(view.buffer)].type;
    std::vector<std::byte> bytes(n * static_cast<std::size_t>(size_of(type)));
    executable_->read(view, bytes);
    std::vector<double> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (type == DType::f32) out[i] = reinterpret_cast<const float*>(bytes.data())[i];
      if (type == DType::bf16) out[i] = to_float(reinterpret_cast<const bf16*>(bytes.data())[i]);
      if (type == DType::i32) out[i] = reinterpret_cast<const std::int32_t*>(bytes.data())[i];
    }
    return out;
  }

  DType type() const { return type_; }
  /// How far results in this type may lie from the exact ones, relative to the largest.
  double tolerance() const { return type_ == DType::bf16 ? 8e-3 : 2e-6; }

 private:
  static double round(DType type, double x) {
    const auto f = static_cast<float>(x);
    return type == DType::bf16 ? static_cast<double>(to_float(to_bf16(f))) : static_cast<double>(f);
  }
  DType type_of(const View& v) const { return types_[static_cast<std::size_t>(v.buffer)]; }

  View make(DType type, const std::vector<double>& values) {
    const View v = builder_.buffer("b" + std::to_string(initial_.size()), type,
                                   static_cast<std::int64_t>(values.size()), BufferKind::persistent);
    initial_.emplace_back(v, values);
    types_.push_back(type);
    return v;
  }

  void put(const View& view, const std::vector<double>& values) {
    std::vector<std::byte> bytes;
    for (const double x : values) {
      const auto append = [&](auto y) {
        const auto* p = reinterpret_cast<const std::byte*>(&y);
        bytes.insert(bytes.end(), p, p + sizeof y);
      };
      const DType type = type_of(view);
      if (type == DType::f32) append(static_cast<float>(x));
      if (type == DType::bf16) append(to_bf16(static_cast<float>(x)));
      if (type == DType::i32) append(static_cast<std::int32_t>(x));
    }
    executable_->write(view, bytes);
  }

  DType type_;
  int threads_;
  ProgramBuilder builder_{{"compute"}};
  std::vector<std::pair<View, std::vector<double>>> initial_;
  std::vector<DType> types_;
  Program program_;
  std::unique_ptr<Executable> executable_;
};

inline std::vector<double> random_values(std::int64_t n, unsigned seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<double> out(static_cast<std::size_t>(n));
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

/// Tests that run for both element types.
class PerType : public ::testing::TestWithParam<DType> {};
inline auto both_types() {
  return ::testing::Values(DType::f32, DType::bf16);
}
inline std::string type_name(const ::testing::TestParamInfo<DType>& info) {
  return info.param == DType::f32 ? "fp32" : "bf16";
}

}  // namespace harness::test
