#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/communication.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/streams.h"

namespace harness::cpu {

/// Turns compute operations into calls on fixed addresses: products are generated, scratch is allocated here, and the
/// calls allocate nothing. The calls are made one at a time, on one thread, whose OpenMP threads they use. Must outlive
/// them.
class Compiler {
 public:
  Compiler(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  std::function<void()> compile(const program::Operation& op);

 private:
  using Run = std::function<void()>;
  Run prepare(const backend::Bound<program::Matmul>& op);
  Run prepare_widened(const backend::Bound<program::Matmul>& op);
  Run prepare(const backend::Bound<program::Attention>& op);
  Run prepare(const backend::Bound<program::AttentionBackward>& op);
  std::shared_ptr<AttentionKernel> attention(const AttentionKernel::Form& form);

  std::function<backend::Tensor(const program::View&)> tensor_;
  int threads_;
  std::shared_ptr<Workspace> workspace_ = std::make_shared<Workspace>();
  std::vector<float> scratch_;  // the largest that any operation needs: they run one after the other
  backend::KernelContext context_;
  std::map<AttentionKernel::Form, std::shared_ptr<AttentionKernel>> attention_;
  std::array<std::vector<bf16>, 2> wide_;  // factors of the largest 8-bit product, as they are multiplied
};

/// A Program on this rank's share of the CPU: one allocation, the compute stream on the calling thread with its OpenMP
/// threads, a sleeping thread for each further stream.
class CpuExecutable : public backend::Executable {
 public:
  explicit CpuExecutable(const backend::ExecutableRequest& request);
  ~CpuExecutable() override;

  std::vector<RendezvousMessage> publish() override;
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s) override;
  void initialize() override;
  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) override;
  std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) override;
  void read(const program::View& view, std::span<std::byte> to) override;
  void write(const program::View& view, std::span<const std::byte> from) override;
  std::shared_ptr<backend::Connections> release_connections() override;
  backend::Progress progress() const override;
  std::vector<std::string> warnings() const override;

 private:
  backend::Tensor tensor(const program::View& view) const {
    return backend::locate(view, program_, arena_, memory_.get(), at_);
  }
  std::span<std::byte> bytes_of(const program::View& view, std::size_t expected) const;
  TaskList compile(const std::vector<program::Operation>& list);
  double step(std::int64_t number, const program::InputSource& inputs, std::vector<program::Interval>* intervals);

  const program::Program& program_;
  program::Coordinates at_;
  int threads_;
  program::Arena arena_;
  struct Free {
    std::size_t bytes = 0;
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  Communication communication_;
  Compiler compiler_;
  backend::Around around_;
  TaskList init_, step_;
  std::unique_ptr<Streams> streams_;
  std::atomic<const Streams*> watched_{nullptr};  // for progress(), which another thread may ask for early
  std::atomic<std::int64_t> steps_begun_{-1};
};

/// Real arithmetic (oneDNN and own kernels, one OpenMP pool) and real collectives (Gloo over TCP).
const backend::Backend& cpu_backend();

}  // namespace harness::cpu
