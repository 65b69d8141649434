#include "fake_work.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include "base/text.h"
#include "machine/cpus.h"
#include "machine/tree.h"
#include "worker/worker.h"
#include "workloads/gpt/gpt.h"

namespace harness::test {
namespace {

using Clock = std::chrono::steady_clock;

double now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

sockaddr_un address_of(const std::string& name) {  // abstract: leaves no file
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return address;
}

class FakeExecutable final : public backend::Executable {
 public:
  explicit FakeExecutable(const job::WorkerOrder& order)
      : rank_(order.rank), ranks_(order.request.layout.ranks()), losses_(workloads::loss_ring) {}
  ~FakeExecutable() override {
    for (const int fd : peers_) ::close(fd);
    if (listener_ >= 0) ::close(listener_);
  }

  std::vector<RendezvousMessage> publish() override {
    if (rank_ != 0 || ranks_ == 1) return {};
    const std::string name = "harness-fake-" + std::to_string(::getpid());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(name);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
    if (::listen(listener_, ranks_) != 0) fail("listen");
    std::vector<RendezvousMessage> messages;
    for (int peer = 1; peer < ranks_; ++peer) messages.push_back({peer, "address", name});
    return messages;
  }

  void connect(const std::vector<RendezvousMessage>& received, double) override {
    if (ranks_ == 1) return;
    if (rank_ == 0) {
      if (!received.empty()) fail("rank 0 got {} messages", received.size());
      for (int peer = 1; peer < ranks_; ++peer) peers_.push_back(::accept(listener_, nullptr, nullptr));
      return;
    }
    if (received.size() != 1 || received[0].peer != 0 || received[0].key != "address") fail("no address came");
    const sockaddr_un address = address_of(received[0].bytes);
    peers_.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(peers_[0], reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  }

  void initialize() override { barrier(); }

  std::vector<double> run(std::int64_t first_step, int steps, const program::InputSource& inputs) override {
    std::vector<double> completions = {now_s()};
    for (std::int64_t step = first_step; step < first_step + steps; ++step) {
      operation_ = 0;
      step_ = step;
      std::byte input{};
      inputs.fill("tokens", step, {&input, 1});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      operation_ = 1;
      barrier();
      losses_[static_cast<std::size_t>(step)] = 10 - static_cast<float>(step);
      completions.push_back(now_s());
    }
    return completions;
  }

  std::vector<program::Interval> run_profiled(std::int64_t step, const program::InputSource& inputs) override {
    run(step, 1, inputs);
    return {{0, 0, 0.0, 0.002}, {1, 0, 0.002, 0.003}};
  }

  void read(const program::View& view, std::span<std::byte> to) override {
    std::memcpy(to.data(), losses_.data() + view.offset, to.size());
  }
  void write(const program::View&, std::span<const std::byte>) override {}
  backend::Progress progress() const override { return {step_, operation_, waiting_}; }

 private:
  void take(int fd) {
    char byte = 0;
    if (::read(fd, &byte, 1) != 1) throw backend::PeerLost("connection closed by peer");
  }
  void give(int fd) {
    if (::send(fd, "x", 1, MSG_NOSIGNAL) != 1) throw backend::PeerLost("cannot write to peer");
  }
  void barrier() {
    waiting_ = true;
    if (rank_ == 0) {
      for (const int fd : peers_) take(fd);
      for (const int fd : peers_) give(fd);
    } else {
      give(peers_[0]);
      take(peers_[0]);
    }
    waiting_ = false;
  }

  int rank_, ranks_, listener_ = -1;
  std::vector<int> peers_;
  std::vector<float> losses_;
  std::atomic<std::int64_t> step_{-1};
  std::atomic<program::OperationId> operation_{-1};
  std::atomic<bool> waiting_{false};
};

struct EmptyInputs : program::InputSource {
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

// Reads one number every quarter of a second.
class SlowCheck final : public workloads::OutputCheck {
 public:
  explicit SlowCheck(int numbers) : numbers_(numbers) {}
  void prepare(program::BufferAccess&) const override {}
  void check(program::BufferAccess& memory) const override {
    for (int i = 0; i < numbers_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      std::array<std::byte, sizeof(float)> number{};
      memory.read({1, 0, 1}, number);
    }
  }

 private:
  int numbers_;
};

}  // namespace

worker::Work fake_work(const job::WorkerOrder& order, const std::shared_ptr<backend::Connections>&,
                       const worker::AroundOf&) {
  std::cout << "a library greets on stdout\n" << std::flush;  // must not disturb the protocol
  worker::Work work;
  work.program_hash = 42;
  if (const char* odd = std::getenv("FAKE_ODD_RANK"); odd != nullptr && std::to_string(order.rank) == odd) {
    work.program_hash = 43;
  }
  if (std::holds_alternative<job::Probe>(order.request.task)) {
    job::ProbeSamples samples;
    samples.peak_flops = 1e9;
    for (const char* name : {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "NCCL_ALGO", "OMPI_COMM_WORLD_RANK", "HARNESS_RANK",
                             "PMIX_RANK", "SLURM_PROCID"}) {
      const char* value = std::getenv(name);
      samples.identity.emplace_back(name, value == nullptr ? "unset" : value);
    }
    samples.identity.emplace_back("PID", std::to_string(::getpid()));
    const std::string status = machine::Tree().bytes("proc/self/status").text;
    samples.identity.emplace_back("CPUS", machine::value_of(status, "Cpus_allowed_list"));
    work.task = [samples](worker::Steps*) { return samples; };
    return work;
  }
  work.program = std::make_unique<program::Program>();
  work.program->streams = {"compute"};
  work.program->buffers = {
      {"tokens", program::DType::i32, 1, program::BufferKind::input},
      {workloads::losses_buffer, program::DType::f32, workloads::loss_ring, program::BufferKind::output}};
  work.program->step = {{program::Matmul{}, 0, {}, -1, {"qkv", program::Phase::forward, 1, 7, false}},
                        {program::AllReduce{}, 0, {}, -1, {"loss", program::Phase::finish, -1, -1, false}}};
  work.inputs = std::make_unique<EmptyInputs>();
  if (const char* numbers = std::getenv("FAKE_SLOW_CHECK"))
    work.check = std::make_unique<SlowCheck>(std::atoi(numbers));
  work.executable = std::make_unique<FakeExecutable>(order);
  const job::BlockRequest& request = order.request;
  if (const auto* timed = std::get_if<job::TimeSteps>(&request.task)) {
    work.task = [warmup = request.warmup_steps, steps = timed->steps](worker::Steps* running) {
      return worker::time_steps(*running, warmup, steps);
    };
  } else {
    const int profiled = std::get<job::RecordTimeline>(request.task).steps;
    work.task = [=, warmup = request.warmup_steps, ranks = request.layout.ranks()](worker::Steps* running) {
      job::TimelineSamples samples = worker::record_timeline(*running, warmup, profiled, order.rank == 0, ranks, {});
      // Each rank's own median is its last step; the median of the slowest ranks' times is the first step.
      constexpr std::array<std::array<double, 3>, 2> seconds{{{3, 1, 2}, {1, 9, 2}}};
      for (std::size_t i = 0; i < samples.offered.size(); ++i)
        samples.offered[i].step_s = seconds.at(order.rank == 0 ? 0 : 1).at(i);
      return samples;
    };
  }
  return work;
}

}  // namespace harness::test
