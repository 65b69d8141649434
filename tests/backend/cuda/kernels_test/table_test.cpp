// The table of operations (selftest/operation_cases.h) over the emulated kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "backend/backend.h"
#include "backend/cuda/kernels/kernels.h"
#include "backends/backends.h"
#include "selftest/operation_check.h"

namespace harness::test {
namespace {

// Runs the operations of a step one after the other on the host: own kernels alone, without a runtime.
class EmulatedKernels : public backend::Executable {
 public:
  explicit EmulatedKernels(const backend::ExecutableRequest& request)
      : program_(*request.program),
        at_(request.layout.coordinates(request.rank)),
        seed_(request.seed),
        arena_(program::plan_arena(program_)),
        memory_(allocate(std::max<std::int64_t>(arena_.bytes, 1))) {}

  std::vector<RendezvousMessage> publish() override { return {}; }
  void connect(const std::vector<RendezvousMessage>& /*received*/, double /*timeout_s*/) override {}
  void initialize() override {}
  std::vector<double> run(std::int64_t /*first*/, int /*steps*/, const program::InputSource& /*inputs*/) override {
    for (const program::Operation& operation : program_.step) {
      std::visit([&](const auto& action) { launch(action); }, operation.action);
    }
    return {0, 0};
  }
  std::vector<program::Interval> run_profiled(std::int64_t /*step*/, const program::InputSource& /*inputs*/) override {
    return {};
  }
  void read(const program::View& view, std::span<std::byte> to) override {
    std::memcpy(to.data(), tensor(view).data, to.size());
  }
  void write(const program::View& view, std::span<const std::byte> from) override {
    std::memcpy(tensor(view).data, from.data(), from.size());
  }
  backend::Progress progress() const override { return {}; }

 private:
  struct Release {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{program::Arena::alignment_bytes}); }
  };
  static std::byte* allocate(std::int64_t bytes) {
    return static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{program::Arena::alignment_bytes}));
  }
  backend::Tensor tensor(const program::View& view) const {
    return backend::locate(view, program_, arena_, memory_.get(), at_);
  }

  template <class Op>
  void launch(const Op& op) {
    backend::KernelContext context{at_, seed_};
    if constexpr (requires { cuda::scratch_floats(op); }) {
      const std::int64_t bytes = cuda::scratch_floats(op) * program::size_of(program::DType::f32);
      scratch_.reset(allocate(std::max<std::int64_t>(bytes, 1)));
      context.scratch = reinterpret_cast<float*>(scratch_.get());
    }
    if constexpr (requires(backend::Bound<Op> bound) { cuda::run(nullptr, bound, context); }) {
      cuda::run(nullptr, backend::bind(op, [this](const program::View& view) { return tensor(view); }), context);
    } else {
      fail("{} is no kernel of our own", Op::name);
    }
  }

  const program::Program& program_;
  const program::Coordinates at_;
  const std::uint64_t seed_;
  const program::Arena arena_;
  std::unique_ptr<std::byte, Release> memory_, scratch_;
};

class EmulatedBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cuda; }
  std::vector<std::pair<std::string, std::string>> identity(
      const backend::ExecutableRequest& /*where*/) const override {
    return {};
  }
  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<EmulatedKernels>(request);
  }
  double measure_matmul_flops(config::Precision /*precision*/, const backend::ExecutableRequest& /*where*/,
                              double /*seconds*/) const override {
    return 0;
  }
};

TEST(Kernels, ComputeWhatTheTableOfOperationsSays) {
  std::vector<selftest::OperationCase> cases = selftest::operation_cases(false, true, false);
  std::erase_if(cases, [](const selftest::OperationCase& c) {  // cuBLASLt's and cuDNN's part
    return c.operation == "matmul" || c.operation == "attention" || c.operation == "attention_backward";
  });
  const auto lines = selftest::check_operations(cases, EmulatedBackend(), backends::get(config::BackendKind::cpu),
                                                {.only = {}, .large = false});
  EXPECT_GE(lines.size(), 40u);
  for (const selftest::CheckLine& line : lines) {
    EXPECT_EQ(line.outcome, selftest::Outcome::passed)
        << line.check << (line.failures.empty() ? "" : ": " + line.failures.front());
  }
}

}  // namespace
}  // namespace harness::test
