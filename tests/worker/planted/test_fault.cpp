#include "worker/planted/test_fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::test {

class FaultyInputs final : public program::InputSource {
 public:
  FaultyInputs(std::unique_ptr<program::InputSource> inner, TestFault fault)
      : inner_(std::move(inner)), fault_(std::move(fault)) {}
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    const bool due = fault_.every_step_ ? step != last_step_ : step == fault_.step_;
    last_step_ = step;
    if (due) fault_.act();
    inner_->fill(buffer, step, to);
  }
  bool is_part_of_step() const override { return inner_->is_part_of_step(); }
  bool is_loaded_by_step() const override { return inner_->is_loaded_by_step(); }

 private:
  std::unique_ptr<program::InputSource> inner_;
  TestFault fault_;
  mutable std::int64_t last_step_ = -1;  // one thread fills
};

namespace {

constexpr std::size_t chunk_bytes = 32u << 20;
constexpr std::size_t allocation_bytes = 1u << 30;

int blocks_before = 0;  // in this process

void eat_memory(bool shared) {
  for (;;) {
    void* chunk = shared ? ::mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
                         : ::operator new(chunk_bytes);
    if (chunk == MAP_FAILED) throw std::bad_alloc();
    std::memset(chunk, 1, chunk_bytes);
    if (shared) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Returns "even" or "odd" by the number of this worker's timed block; "" in other workers.
std::string_view parity_of_block() {
  const char* block = std::getenv("HARNESS_BLOCK");
  if (block == nullptr) return "";
  return parse_integer(block) % 2 == 0 ? "even" : "odd";
}

}  // namespace

TestFault TestFault::parse(const std::string& text, int rank, const std::string& case_name) {
  TestFault sum;
  for (const std::string& one : split_text(text, ";")) {
    const TestFault fault = parse_one(one, rank, case_name);
    if (fault.kind_.empty()) continue;
    const bool adds = !sum.kind_.empty();
    const bool can_add = fault.kind_ == "delay" || fault.kind_ == "pretend";
    if (adds && !(can_add && fault.kind_ == sum.kind_ && fault.every_step_ && sum.every_step_))
      fail("HARNESS_TEST_FAULT: only delays of every step can be joined by ';'");
    const double before_s = adds ? sum.seconds_ : 0;
    sum = fault;
    sum.seconds_ += before_s;
  }
  return sum;
}

TestFault TestFault::parse_one(std::string_view text, int rank, const std::string& case_name) {
  TestFault fault;
  bool here = true;
  for (const std::string& item : split_text(text, ",")) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) fail("HARNESS_TEST_FAULT: expected name=value, found '{}'", item);
    const std::string name = item.substr(0, equals), value = item.substr(equals + 1);
    if (name == "rank") {
      here = here && parse_integer(value) == rank;
    } else if (name == "case") {
      here = here && value == case_name;
    } else if (name == "blocks") {
      here = here && value == parity_of_block();
    } else if (name == "company") {
      here = here && (blocks_before > 0) == (value == "yes");
    } else if (name == "stream") {
      fault.stream_ = value;
    } else if (name == "step" && value == "every") {
      fault.every_step_ = true;
    } else if (name == "step") {
      fault.step_ = parse_integer(value);
    } else if (name == "seconds") {
      fault.seconds_ = parse_real(value);
    } else if (name == "kind") {
      fault.kind_ = value;
    } else {
      fail("HARNESS_TEST_FAULT: unknown name '{}'", name);
    }
  }
  if (fault.is_within_step() && fault.kind_ != "delay")
    fail("HARNESS_TEST_FAULT: stream= is valid with kind=delay only");
  if (fault.kind_ == "pretend" && !fault.every_step_) fail("HARNESS_TEST_FAULT: kind=pretend needs step=every");
  return here ? fault : TestFault();
}

void TestFault::act_before_steps() const {
  if (step_ < 0 && !kind_.empty() && !is_within_step()) act();
}

std::unique_ptr<program::InputSource> TestFault::around(std::unique_ptr<program::InputSource> inputs) const {
  if (kind_.empty() || kind_ == "pretend" || step_ < 0 || is_within_step()) return inputs;
  return std::make_unique<FaultyInputs>(std::move(inputs), *this);
}

std::function<void(std::int64_t)> TestFault::between_steps(const program::Program& program) const {
  const bool filled = std::ranges::any_of(
      program.buffers, [](const program::Buffer& buffer) { return buffer.kind == program::BufferKind::input; });
  if (filled || kind_.empty() || kind_ == "pretend" || step_ < 0 || is_within_step()) return {};
  return [fault = *this](std::int64_t step) {
    if (fault.every_step_ || step == fault.step_) fault.act();
  };
}

void TestFault::pretend(job::TimedSamples& samples, int warmup_steps) const {
  if (kind_ != "pretend") return;
  for (double& seconds : samples.step_s) seconds += seconds_;
  samples.timed_total_s += seconds_ * static_cast<double>(std::ssize(samples.step_s) - warmup_steps);
}

void TestFault::act() const {
  if (kind_ == "delay") {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    return;
  }
  if (kind_ == "spin") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
    while (std::chrono::steady_clock::now() < end) {
    }
    return;
  }
  std::cerr << "test fault: " << kind_ << std::endl;
  if (kind_ == "segfault") ::raise(SIGSEGV);
  if (kind_ == "exit") std::exit(7);
  if (kind_ == "throw") fail("a test fault was thrown");
  if (kind_ == "kill") ::kill(::getpid(), SIGKILL);
  if (kind_ == "stop") ::kill(::getpid(), SIGSTOP);
  if (kind_ == "memory") eat_memory(false);
  if (kind_ == "allocation")
    fail("a single allocation of {} bytes succeeded", std::vector<char>(allocation_bytes).capacity());
  if (kind_ == "shared_memory") eat_memory(true);
  while (kind_ == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  fail("HARNESS_TEST_FAULT: unknown kind '{}'", kind_);
}

worker::WorkFactory with_faults(
    std::function<worker::Work(const job::WorkerOrder&, std::shared_ptr<backend::Connections>, const worker::AroundOf&)>
        make) {
  return [make = std::move(make)](const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections) {
    const job::BlockRequest& request = order.request;
    const char* text = test_hook("HARNESS_TEST_FAULT");
    const TestFault fault = TestFault::parse(text == nullptr ? "" : text, order.rank, request.case_name);
    ++blocks_before;
    fault.act_before_steps();
    worker::AroundOf delayed;
    if (fault.is_within_step())
      delayed = [delay = fault.delay_within_step()](const auto& of) { return around(delay, of); };
    worker::Work work = make(order, std::move(connections), delayed);
    if (work.inputs) work.inputs = fault.around(std::move(work.inputs));
    if (work.executable) work.before_step = fault.between_steps(*work.program);
    work.task = [fault, run = std::move(work.task), warmup = request.warmup_steps](worker::Steps* steps) {
      job::TaskSamples samples = run(steps);
      if (auto* timed = std::get_if<job::TimedSamples>(&samples)) fault.pretend(*timed, warmup);
      return samples;
    };
    return work;
  };
}

}  // namespace harness::test
