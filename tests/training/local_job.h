#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"
#ifdef HARNESS_TEST_CUDA
#include "backend/cuda/cuda_backend.h"
#include "fake.h"
#endif

namespace harness::testing {

// tests/CMakeLists.txt builds these tests once more for the cuda backend over an emulated device.
#ifdef HARNESS_TEST_CUDA
inline constexpr BackendKind tested_backend = BackendKind::cuda;
#else
inline constexpr BackendKind tested_backend = BackendKind::cpu;
#endif

/// All ranks of a job in this process, a thread each, over the real backend and its real communication.
class LocalJob {
 public:
  LocalJob(const Model& model, Settings settings, const Layout& layout, std::uint64_t seed = 1) : layout_(layout) {
#ifdef HARNESS_TEST_CUDA
    fake::Settings devices;
    devices.device_count = layout.ranks();
    fake::reset(devices);
#endif
#ifdef HARNESS_TEST_CUDA
    const Backend& tested = cuda_backend();
#else
    const Backend& tested = backend(tested_backend);
#endif
    // Where the device is emulated nobody runs cuDNN's kernels.
    if (tested_backend == BackendKind::cuda) settings.attention = AttentionKind::unfused;
    set_ = lower(build_programs(model, settings, layout), tested.declared());
    const int n = layout.ranks();
    std::vector<std::vector<RendezvousMessage>> inbox(static_cast<std::size_t>(n));
    for (int rank = 0; rank < n; ++rank) {
      ExecutableRequest r;
      r.program = &program(rank);
      r.groups = set_.groups;
      r.layout = layout;
      r.rank = rank;
      r.settings = settings;
      r.seed = seed;
      r.local_rank = rank;
      r.local_ranks = n;
      ranks_.push_back(tested.create(r));
      inputs_.push_back(make_inputs(model, settings, layout, layout.coordinates(rank), seed));
      for (const RendezvousMessage& m : ranks_.back()->publish()) {
        inbox[static_cast<std::size_t>(m.peer)].push_back({rank, m.key, m.bytes});
      }
    }
    on_all([&](int rank) {
      ranks_[static_cast<std::size_t>(rank)]->connect(inbox[static_cast<std::size_t>(rank)], 30);
      ranks_[static_cast<std::size_t>(rank)]->initialize();
    });
  }

  void run(int steps) {
    on_all([&](int rank) {
      ranks_[static_cast<std::size_t>(rank)]->run(done_, steps, *inputs_[static_cast<std::size_t>(rank)]);
    });
    done_ += steps;
  }

  /// Of all steps so far, as a rank saw them.
  std::vector<float> losses(int rank) {
    return read(rank, losses_buffer, 0, done_);
  }

  std::vector<float> read(int rank, const std::string& buffer, std::int64_t offset, std::int64_t count) {
    const auto& buffers = program(rank).buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].name != buffer) continue;
      std::vector<float> values(static_cast<std::size_t>(count));
      ranks_[static_cast<std::size_t>(rank)]->read({static_cast<BufferId>(b), offset, count},
                                                   std::as_writable_bytes(std::span(values)));
      return values;
    }
    throw std::runtime_error("no buffer " + buffer);
  }

  /// A rank that fails ends its own thread; the first error is thrown when all are back.
  void on_all(const std::function<void(int)>& work) {
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          work(rank);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
    for (auto& t : threads) t.join();
    if (first) std::rethrow_exception(first);
  }

  const Program& program(int rank) const {
    return set_.roles[static_cast<std::size_t>(set_.role_of(layout_.coordinates(rank)))];
  }

 private:
  Layout layout_;
  ProgramSet set_;
  std::vector<std::unique_ptr<Executable>> ranks_;
  std::vector<std::unique_ptr<InputSource>> inputs_;
  int done_ = 0;
};

inline Layout layout_of(int tp, int pp, int dp) {
  Layout l;
  l.size = {tp, 1, dp, pp};
  return l;
}

}  // namespace harness::testing
