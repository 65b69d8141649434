// Guarantees of the cuda backend, tested over the emulated device.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/cuda/cuda_backend.h"
#include "machine/cpus.h"
#include "training/local_job.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using test::LocalJob;

const config::Model tiny{"tiny", 2, 64, 4, 128, 32};

config::Settings small() {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  s.bucket_size_bytes = 64 << 10;
  return s;
}

constexpr int steps = test::few_cells ? 2 : 3;

std::vector<float> losses(const config::Settings& settings, const program::Layout& layout) {
  LocalJob job(tiny, settings, layout);
  job.run(1);  // in two calls, as a block runs warm-up and timed steps
  job.run(steps - 1);
  return job.losses(0);
}

TEST(CudaExecutable, AGraphTrainsAsTheStreamsDo) {
  for (const program::Layout& layout : {test::layout_of(1, 1, 1), test::layout_of(2, 2, 1), test::layout_of(1, 2, 2)}) {
    config::Settings s = small();
    s.cuda_graph = true;
    const auto with = losses(s, layout);
    s.cuda_graph = false;
    EXPECT_EQ(losses(s, layout), with);
  }
}

// Assumes a machine without a GPU at the fake one's PCI address: its kernel then names no CPUs near that address.
TEST(CudaExecutable, WhereNothingIsNearTheGpuTheCpusStay) {
  const machine::CpuSet before = machine::bound_cpus();
  LocalJob job(tiny, small(), test::layout_of(1, 1, 1));
  job.run(1);
  EXPECT_EQ(machine::bound_cpus(), before);
}

// The fake GPU's priorities go from 0, the lowest, to -5.
TEST(CudaExecutable, UpdatesBesideTheBackwardPassHaveLowPriorityAndTrainAlike) {
  for (const bool graph : {true, false}) {
    const program::Layout layout = graph ? test::layout_of(1, 2, 2) : test::layout_of(1, 1, 1);
    config::Settings s = small();
    s.cuda_graph = graph;
    std::vector<std::vector<float>> results;
    for (const bool overlap : {false, true}) {
      s.overlap_optimizer = overlap;
      LocalJob job(tiny, s, layout);
      job.run(2);
      results.push_back(job.losses(0));
      const std::vector<int> priorities = fake::stream_priorities();
      EXPECT_EQ(std::ranges::count(priorities, 0), overlap ? layout.ranks() : 0);
      EXPECT_GE(std::ranges::count(priorities, -5), layout.ranks());
      EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
    }
    // Embedding gradients are summed in any order.
    for (std::size_t i = 0; i < results[0].size(); ++i) EXPECT_NEAR(results[1][i] / results[0][i], 1, 1e-4);
  }
}

TEST(CudaExecutable, NothingTheStandInsRefuseAndNothingLeftBehind) {
  {
    LocalJob job(tiny, small(), test::layout_of(2, 2, 2));
    job.run(4);
  }
  EXPECT_EQ(fake::complaints(), std::vector<std::string>{});
  EXPECT_EQ(fake::leaks(), std::vector<std::string>{});
}

// Each communicator costs device memory and start-up time.
TEST(CudaExecutable, TheGroupOfAllRanksUsesTheJobsCommunicator) {
  const auto communicators_of = [](const program::Layout& layout) {
    const LocalJob job(tiny, small(), layout);
    for (const std::string& made : fake::leaks()) {
      if (made.ends_with(" communicators")) return std::stoi(made) / layout.ranks();
    }
    return 0;
  };
  EXPECT_EQ(communicators_of(test::layout_of(1, 1, 1)), 0);
  EXPECT_EQ(communicators_of(test::layout_of(1, 1, 2)), 2);  // the job's, which is also world's, and data
  EXPECT_EQ(communicators_of(test::layout_of(2, 1, 2)), 3);  // and tensor
}

// Inputs from a slow host.
class SlowInputs final : public program::InputSource {
 public:
  explicit SlowInputs(std::unique_ptr<program::InputSource> inner) : inner_(std::move(inner)) {}
  void fill(const std::string& input, std::int64_t step, std::span<std::byte> to) const override {
    const auto began = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    inner_->fill(input, step, to);
    spent_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  double spent_s() const { return spent_s_; }

 private:
  std::unique_ptr<program::InputSource> inner_;
  mutable double spent_s_ = 0;
};

TEST(CudaExecutable, TheFirstStepDoesNotWaitForItsInputs) {
  const config::Settings s = small();
  const program::ProgramSet set = program::lower(workloads::build_programs(tiny, s, {}), cuda_backend().declared());
  backend::ExecutableRequest request;
  request.program = &set.roles.front();
  request.groups = set.groups;
  request.settings = s;
  const auto executable = cuda_backend().create(request);
  executable->connect({}, 10);
  executable->initialize();
  const SlowInputs inputs(workloads::workload_of(s).inputs(tiny, s, {}, {}, 1));
  const auto began = std::chrono::steady_clock::now();
  const std::vector<double> times = executable->run(0, 2, inputs);
  const double all_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_GT(inputs.spent_s(), 0.2);
  EXPECT_LT(times.back() - times.front(), all_s - 0.9 * inputs.spent_s());
}

// Inputs that note whether the step before was complete when they were asked for.
class NotedInputs final : public program::InputSource {
 public:
  NotedInputs(std::unique_ptr<program::InputSource> inner, const backend::Executable& executable)
      : inner_(std::move(inner)), executable_(executable) {}
  void fill(const std::string& input, std::int64_t step, std::span<std::byte> to) const override {
    too_early_ += executable_.progress().step < step ? 1 : 0;
    inner_->fill(input, step, to);
  }
  bool is_part_of_step() const override { return true; }
  bool is_loaded_by_step() const override { return true; }
  int too_early() const { return too_early_; }

 private:
  std::unique_ptr<program::InputSource> inner_;
  const backend::Executable& executable_;
  mutable int too_early_ = 0;
};

TEST(CudaExecutable, AStepThatLoadsItsOwnBatchBeginsWhenTheOneBeforeIsComplete) {
  const config::Settings s = small();
  const program::ProgramSet set = program::lower(workloads::build_programs(tiny, s, {}), cuda_backend().declared());
  backend::ExecutableRequest request;
  request.program = &set.roles.front();
  request.groups = set.groups;
  request.settings = s;
  const auto executable = cuda_backend().create(request);
  executable->connect({}, 10);
  executable->initialize();
  const NotedInputs inputs(workloads::workload_of(s).inputs(tiny, s, {}, {}, 1), *executable);
  executable->run(0, 4, inputs);
  EXPECT_EQ(inputs.too_early(), 0);
}

// The ranks prepare their kernels for unequally long before the rehearsal, and NCCL connects in it: all of this belongs
// to the start of a block, not to a step.
TEST(CudaExecutable, TheStartMayTakeLongerThanAStep) {
  const program::Layout layout = test::layout_of(1, 1, 2);
  fake::Settings devices;
  devices.device_count = layout.ranks();
  fake::reset(devices);
  const config::Settings s = small();
  const program::ProgramSet set = program::lower(workloads::build_programs(tiny, s, layout), cuda_backend().declared());
  test::Rendezvous rendezvous(layout.ranks());
  std::vector<std::unique_ptr<backend::Executable>> ranks;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    backend::ExecutableRequest request;
    request.program = &set.roles.front();
    request.groups = set.groups;
    request.layout = layout;
    request.rank = request.local_rank = rank;
    request.local_ranks = layout.ranks();
    request.settings = s;
    request.timeout_s = 0.01;
    ranks.push_back(cuda_backend().create(request));
    rendezvous.publish(rank, *ranks.back());
  }
  test::rethrow_first(test::on_ranks(layout.ranks(), [&](int rank) {
    ranks[rank]->connect(rendezvous.inbox(rank), 60);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ranks[rank]->initialize();
  }));
}

}  // namespace
}  // namespace harness::cuda
