#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/numbers.h"
#include "backend/on_host.h"
#include "backends/backends.h"
#include "base/random.h"
#include "selftest/checks.h"
#include "selftest/operation_cases.h"

namespace harness::test {

using Values = std::vector<double>;

inline Numbers numbers_of(const selftest::OperationCase& test_case, selftest::CaseBytes& bytes,
                          const program::View& view) {
  const program::DType type = test_case.program.buffers[view.buffer].type;
  return Numbers({bytes[view.buffer].data() + view.offset * program::size_of(type), type, view.count});
}

/// The largest error allowed, relative to the largest element. Except in fp32, a dbias sums din as rounded, so it gets
/// the tolerance of f16.
inline double tolerance_of(const selftest::OperationCase& test_case, const program::Buffer& buffer) {
  if (buffer.type == program::DType::bf16) return 8e-3;
  const bool sums_rounded = buffer.name == "dbias" && test_case.precision() != "fp32";
  return buffer.type == program::DType::f16 || sums_rounded ? 1e-3 : 5e-6;
}

/// Runs a case on the cpu backend and on the reference and expects equal buffers, within tolerance. Returns the cpu
/// backend's buffers.
inline selftest::CaseBytes expect_reference(const selftest::OperationCase& test_case, selftest::CaseBytes before,
                                            int threads = 2) {
  const std::string name = test_case.operation + ": " + test_case.name;
  if (!test_case.prepare.empty())
    before = selftest::results_of(reference(), test_case, test_case.prepare, std::move(before));
  const std::vector<program::Operation>& step = test_case.program.step;
  selftest::CaseBytes want = selftest::results_of(reference(), test_case, step, before);
  selftest::CaseBytes got =
      selftest::results_of(backends::get(config::BackendKind::cpu), test_case, step, before, threads);
  EXPECT_EQ(selftest::compare(test_case, before, got, want).failure, "") << name;
  for (std::size_t b = 0; b < got.size(); ++b) {
    if (got[b] == want[b]) continue;
    const program::View& view = test_case.buffers[b].view;
    const Numbers ours = numbers_of(test_case, got, view), exact = numbers_of(test_case, want, view);
    double difference = 0, largest = 1e-30;
    for (std::int64_t i = 0; i < view.count; ++i) {
      if (std::isnan(exact[i])) continue;  // padding between the rows of a view
      difference = std::max(difference, std::abs(ours[i] - exact[i]));
      largest = std::max(largest, std::abs(exact[i]));
    }
    const program::Buffer& buffer = test_case.program.buffers[b];
    EXPECT_LE(difference / largest, tolerance_of(test_case, buffer)) << name << ": " << buffer.name;
  }
  return got;
}

/// One operation on buffers with given numbers.
class Rig {
 public:
  explicit Rig(program::DType type = program::DType::f32, int threads = 2) : builder_(type), threads_(threads) {}

  program::View tensor(const Values& values) { return typed(builder_.type(), values); }
  program::View f32(const Values& values) { return typed(program::DType::f32, values); }
  program::View i32(const Values& values) { return typed(program::DType::i32, values); }
  program::View typed(program::DType type, const Values& values) {
    given_.push_back(values);
    return builder_.output(next_name(), type, static_cast<std::int64_t>(values.size()));
  }
  /// Write-only: filled with NaN.
  program::View output(std::int64_t count, program::DType type) {
    given_.emplace_back();
    return builder_.output(next_name(), type, count);
  }
  program::View output(std::int64_t count) { return output(count, builder_.type()); }
  program::View output_f32(std::int64_t count) { return output(count, program::DType::f32); }

  /// Runs before check(), on the reference only: for inputs that depend on other inputs.
  void prepare(const program::Action& action) { builder_.prepare(action); }
  /// Runs the action and expects the reference's results.
  void check(const program::Action& action) {
    take(action);
    after_ = expect_reference(case_, bytes_, threads_);
  }
  /// Runs the action without comparing: for results that are not finite.
  void run(const program::Action& action) {
    take(action);
    after_ = selftest::results_of(backends::get(config::BackendKind::cpu), case_, case_.program.step, bytes_, threads_);
  }
  Values get(const program::View& view) { return numbers_of(case_, after_, view).copy(); }

 private:
  std::string next_name() const { return "buffer " + std::to_string(given_.size()); }
  void take(const program::Action& action) {
    case_ = builder_.take(action, "given numbers");
    for (std::size_t b = 0; b < given_.size(); ++b) {
      bytes_.push_back(selftest::initial_bytes(case_, b, 1));
      const Numbers to = numbers_of(case_, bytes_, case_.buffers[b].view);
      for (std::size_t i = 0; i < given_[b].size(); ++i) to[static_cast<std::int64_t>(i)] = given_[b][i];
    }
  }

  selftest::CaseBuilder builder_;
  int threads_;
  std::vector<Values> given_;  // by buffer; empty for outputs
  selftest::OperationCase case_;
  selftest::CaseBytes bytes_, after_;
};

inline Values random_values(std::int64_t n, std::uint64_t seed, double scale = 1) {
  Values out(n);
  for (std::int64_t i = 0; i < n; ++i) out[i] = scale * philox_normal(seed, static_cast<std::uint64_t>(i));
  return out;
}

/// The element types of matrix products.
inline auto all_types() {
  return ::testing::Values(program::DType::f32, program::DType::bf16, program::DType::f16);
}

}  // namespace harness::test
