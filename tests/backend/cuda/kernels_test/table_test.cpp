// The table of operations (selftest/operation_cases.h) on this project's own kernels, emulated, without a CUDA runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "backend/cuda/kernels/kernels.h"
#include "backend/on_host.h"
#include "backends/backends.h"
#include "buffers.h"
#include "selftest/checks.h"
#include "support/soak.h"

namespace harness::test {
namespace {

struct EmulatedKernels {
  template <class Op, class Place>
  static void run(const Op& op, const Place& place, backend::KernelContext context) {
    std::optional<Scratch> scratch;
    if constexpr (requires { cuda::scratch_floats(op); }) context.scratch = scratch.emplace(cuda::scratch_floats(op));
    if constexpr (requires(backend::Bound<Op> bound) { cuda::run(nullptr, bound, context); }) {
      cuda::run(nullptr, backend::bind(op, place), context);
    } else {
      fail("{} is no kernel of our own", Op::name);
    }
  }
};

TEST(Kernels, ComputeWhatTheTableOfOperationsSays) {
  std::vector<selftest::OperationCase> cases = selftest::operation_cases(false, true, true);
  std::erase_if(cases, [](const selftest::OperationCase& c) {  // cuBLASLt and cuDNN compute these
    return c.operation == "matmul" || c.operation == "attention" || c.operation == "attention_backward";
  });
  // With sanitizers, only addresses matter: take the first cases of each line. All of them run at -O2.
  std::map<std::string, int> taken;
  std::erase_if(
      cases, [&](const selftest::OperationCase& c) { return sanitized && ++taken[c.operation + c.precision()] > 3; });
  const OnHost<EmulatedKernels, config::BackendKind::cuda> emulated;
  const auto lines = selftest::check_operations(cases, emulated, backends::get(config::BackendKind::cpu),
                                                {.only = {}, .large = false});
  EXPECT_GE(lines.size(), 40u);
  for (const selftest::CheckLine& line : lines) {
    EXPECT_EQ(line.outcome, selftest::Outcome::passed)
        << line.check << (line.failures.empty() ? "" : ": " + line.failures.front());
  }
}

}  // namespace
}  // namespace harness::test
