#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backends/backends.h"
#include "support/delay.h"
#include "support/ranks.h"
#include "support/soak.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"
#ifdef HARNESS_TEST_CUDA
#include "backend/cuda/cuda_backend.h"
#include "fake.h"
#endif

namespace harness::test {

/// Rotary positions, groups of two queries, and none of the features that Llama lacks.
inline config::Model tiny_llama(std::int64_t layers, std::int64_t sequence) {
  config::Model m{"llama", layers, 64, 4, 128, sequence};
  m.kv_heads = 2;
  m.ffn = 96;
  m.activation = config::Activation::swiglu;
  m.norm = config::NormKind::rms_norm;
  m.positions = config::Positions::rotary;
  m.tied_embeddings = m.biases = false;
  return m;
}

// tests/CMakeLists.txt builds these tests once more for the cuda backend over an emulated device.
#ifdef HARNESS_TEST_CUDA
inline constexpr config::BackendKind tested_backend = config::BackendKind::cuda;
#else
inline constexpr config::BackendKind tested_backend = config::BackendKind::cpu;
#endif

inline constexpr bool emulated = tested_backend == config::BackendKind::cuda;  // and therefore slow
/// Slower still: a test runs a cell or two of its grid, which cover every axis of it. `make test` runs all cells.
inline constexpr bool few_cells = emulated;

/// Connections to reuse, by rank; empty: none.
using KeptConnections = std::vector<std::shared_ptr<backend::Connections>>;

/// Runs all ranks of a job in this process, one thread each, on the real backend with its real communication.
class LocalJob {
 public:
  LocalJob(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
           std::uint64_t seed = 1, const KeptConnections& kept = {}, const Delay& delay = {})
      : LocalJob(workloads::build_programs(model, settings, layout), model, settings, seed, kept, delay) {}
  /// Runs any Programs; training steps get inputs from model and settings.
  explicit LocalJob(const program::ProgramSet& programs, const config::Model& model = {},
                    config::Settings settings = {}, std::uint64_t seed = 1, const KeptConnections& kept = {},
                    const Delay& delay = {})
      : layout_(programs.layout) {
    const program::Layout& layout = layout_;
#ifdef HARNESS_TEST_CUDA
    if (kept.empty()) {
      fake::Settings devices;
      devices.device_count = layout.ranks();
      if (settings.precision == config::Precision::mxfp8) devices.compute_major = 10;
      fake::reset(devices);
    }
    const backend::Backend& tested = cuda::cuda_backend();
#else
    const backend::Backend& tested = backends::get(tested_backend);
#endif
    // The emulated device cannot run cuDNN's kernels.
    if (tested_backend == config::BackendKind::cuda) settings.attention = config::AttentionKind::unfused;
    set_ = program::lower(programs, config::fused_for(tested_backend, settings));
    const int n = layout.ranks();
    Rendezvous rendezvous(n);
    for (int rank = 0; rank < n; ++rank) {
      backend::ExecutableRequest r;
      r.program = &program(rank);
      r.groups = set_.groups;
      r.layout = layout;
      r.rank = rank;
      r.settings = settings;
      r.seed = seed;
      r.local_rank = rank;
      r.local_ranks = n;
      if (!delay.stream.empty()) r.around = [delay](const auto& of) { return around(delay, of); };
      if (!kept.empty()) r.connections = kept[rank];
      ranks_.push_back(tested.create(r));
      inputs_.push_back(
          workloads::workload_of(settings).inputs(model, settings, layout, layout.coordinates(rank), seed));
      rendezvous.publish(rank, *ranks_.back());
    }
    messages_ = rendezvous.messages();
    on_all([&](int rank) {
      ranks_[rank]->connect(rendezvous.inbox(rank), 30);
      ranks_[rank]->initialize();
    });
  }

  /// The number of rendezvous messages between the ranks.
  int messages() const {
    return messages_;
  }
  /// Ends the job and returns its connections for another one.
  KeptConnections release() {
    KeptConnections kept;
    for (auto& rank : ranks_) kept.push_back(rank->release_connections());
    ranks_.clear();
    return kept;
  }

  void run(int steps) {
    on_all([&](int rank) { ranks_[rank]->run(done_, steps, *inputs_[rank]); });
    done_ += steps;
  }

  /// Runs one profiled step and returns rank 0's intervals.
  std::vector<program::Interval> run_profiled() {
    std::vector<program::Interval> intervals;
    on_all([&](int rank) {
      auto own = ranks_[rank]->run_profiled(done_, *inputs_[rank]);
      if (rank == 0) intervals = std::move(own);
    });
    ++done_;
    return intervals;
  }
  std::vector<std::string> warnings(int rank) const {
    return ranks_[rank]->warnings();
  }

  /// Returns the losses of all steps so far, as on one rank.
  std::vector<float> losses(int rank) {
    return read(rank, workloads::losses_buffer, 0, done_);
  }

  std::vector<float> read(int rank, const std::string& buffer, std::int64_t offset, std::int64_t count) {
    const program::View whole = workloads::find_buffer(program(rank), buffer);
    if (!whole.present()) throw std::runtime_error("no buffer " + buffer);
    std::vector<float> values(count);
    ranks_[rank]->read(whole.part(offset, count), std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// Runs work(rank) on all ranks. A rank that fails ends its own thread; then throws the first error.
  void on_all(const std::function<void(int)>& work) {
    rethrow_first(on_ranks(layout_.ranks(), work));
  }

  const program::Program& program(int rank) const {
    return set_.roles[set_.role_of(layout_.coordinates(rank))];
  }

 private:
  program::Layout layout_;
  program::ProgramSet set_;
  std::vector<std::unique_ptr<backend::Executable>> ranks_;
  std::vector<std::unique_ptr<program::InputSource>> inputs_;
  int done_ = 0, messages_ = 0;
};

inline program::Layout layout_of(int tp, int pp, int dp) {
  program::Layout l;
  l.size = {tp, 1, dp, pp};
  return l;
}

/// `sequences` are of all replicas together, and each replica takes them in `micro_batches`. Buckets cut layers.
inline config::Settings settings_on(const program::Layout& layout, std::int64_t sequences, std::int64_t micro_batches) {
  config::Settings s;
  s.layout = layout;
  s.layout[program::Axis::data] = 1;
  s.layout.replicas_of_node = program::Layout().replicas_of_node;
  s.global_batch_size = sequences;
  s.micro_batch_size = sequences / layout[program::Axis::data] / micro_batches;
  s.bucket_size_bytes = 64 << 10;
  return s;
}

/// Rebuilds a Program with `step` as its operations. `before`, called with the builder and each operation, may change
/// it and emit others.
template <class Before>
program::Program rebuilt(const program::Program& p, const std::vector<program::Operation>& step, Before&& before) {
  program::ProgramBuilder b(p.streams);
  for (const program::Buffer& buffer : p.buffers) b.buffer(buffer.name, buffer.type, buffer.count, buffer.kind);
  for (const program::Operation& op : p.init) b.emit(op.stream, op.action, op.label, {}, op.fused_group);
  b.begin_step();
  for (program::Operation op : step) {
    before(b, op);
    std::vector<program::OperationId> after;
    if (op.label.phase == program::Phase::finish) {
      for (program::StreamId stream = 0; stream < b.streams(); ++stream) after.push_back(b.last(stream));
    }
    b.emit(op.stream, op.action, op.label, after, op.fused_group);
  }
  return b.take();
}

}  // namespace harness::test
