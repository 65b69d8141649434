#pragma once

#include <atomic>
#include <memory>

#include "backend/backend.h"
#include "backend/cpu/communication.h"
#include "backend/cpu/compile.h"
#include "backend/cpu/streams.h"

namespace harness::cpu {

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
  TaskList compile(Compiler& compiler, const std::vector<program::Operation>& list);
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

}  // namespace harness::cpu
