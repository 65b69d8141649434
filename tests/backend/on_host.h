#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace harness::test {

/// Runs the operations of a step in order on the host. Kernels::run(operation, place, context) computes each of them;
/// place(view) is the Tensor of a view.
template <class Kernels>
class HostExecutable : public backend::Executable {
 public:
  explicit HostExecutable(const backend::ExecutableRequest& request)
      : program_(*request.program),
        context_{request.layout.coordinates(request.rank), request.seed},
        arena_(program::plan_arena(program_)),
        memory_(static_cast<std::byte*>(
            ::operator new (std::max<std::int64_t>(arena_.bytes, 1), std::align_val_t{alignment}))) {}

  std::vector<RendezvousMessage> publish() override { return {}; }
  void connect(const std::vector<RendezvousMessage>& /*received*/, double /*timeout_s*/) override {}
  void initialize() override {}
  std::vector<double> run(std::int64_t /*first*/, int /*steps*/, const program::InputSource& /*inputs*/) override {
    const auto place = [this](const program::View& view) { return tensor(view); };
    for (const program::Operation& operation : program_.step) {
      std::visit([&](const auto& action) { Kernels::run(action, place, context_); }, operation.action);
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
  static constexpr std::size_t alignment = program::Arena::alignment_bytes;
  struct Release {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{alignment}); }
  };
  backend::Tensor tensor(const program::View& view) const {
    return backend::locate(view, program_, arena_, memory_.get(), context_.at);
  }

  const program::Program& program_;
  const backend::KernelContext context_;
  const program::Arena arena_;
  std::unique_ptr<std::byte, Release> memory_;
};

template <class Kernels, config::BackendKind which>
class OnHost : public backend::Backend {
 public:
  config::BackendKind kind() const override { return which; }
  std::vector<std::pair<std::string, std::string>> identity(const backend::ExecutableRequest& /*at*/) const override {
    return {};
  }
  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<HostExecutable<Kernels>>(request);
  }
};

/// Computes every operation in double precision, in plain loops from the definitions in program/operation.h: the
/// reference for kernels. It rounds results when it stores them, as kernels do. In reference.cpp.
const backend::Backend& reference();

}  // namespace harness::test
