#include "programs.h"

#include <vector>

#include "program/builder.h"

namespace harness::test {

program::ProgramSet ring_attention(int context) {
  constexpr program::StreamId compute = 0, ring = 1, world = 2;
  const std::int64_t length = 32, heads = 2, dim = 8, width = heads * dim;
  program::ProgramBuilder b({"compute", "ring", "world"});
  const program::View q = b.buffer("q", program::DType::f32, length * width, program::BufferKind::persistent);
  const program::View local_kv =
      b.buffer("kv", program::DType::f32, 2 * length * width, program::BufferKind::persistent);
  const program::View sum = b.buffer("sum", program::DType::f32, 1, program::BufferKind::persistent);
  for (const program::View& v : {q, local_kv, sum}) b.emit(compute, program::Fill{v, 0.5}, {"", program::Phase::setup});
  b.begin_step();
  const program::View out = b.buffer("out", program::DType::f32, length * width),
                      stats = b.buffer("stats", program::DType::f32, length * heads);
  const program::View kv[2] = {b.buffer("kv0", program::DType::f32, 2 * length * width),
                               b.buffer("kv1", program::DType::f32, 2 * length * width)};
  const program::AttentionShape shape{1, heads, dim, length, length, width, width, false};
  program::View now = local_kv;
  for (int hop = 0; hop < context; ++hop) {
    const program::View next = kv[hop % 2];
    if (hop + 1 < context) {  // starts before the attention and runs behind it
      const auto group = b.new_fused_group();
      b.emit(ring, program::Send{{program::Axis::context, +1}, now}, {"keys and values"}, {}, group);
      b.emit(ring, program::Receive{{program::Axis::context, -1}, next}, {"keys and values"}, {}, group);
    }
    const program::View k = now.part(0, length * width), v = now.part(length * width, length * width);
    if (hop == 0) {
      b.emit(compute, program::Attention{q, k, v, out, stats, shape}, {"own block"});
    } else {
      const program::View part = b.buffer("part", program::DType::f32, length * width),
                          part_stats = b.buffer("part_stats", program::DType::f32, length * heads);
      b.emit(compute, program::Attention{q, k, v, part, part_stats, shape}, {"passing block"});
      b.emit(compute, program::AttentionMerge{part, part_stats, out, stats, shape}, {});
    }
    now = next;
  }
  b.emit(world, program::AllReduce{0, sum}, {"", program::Phase::finish}, {b.last(compute), b.last(ring)});
  program::ProgramSet set{{}, {{"world", program::AxisSet::all(), {}}}, {}, {b.take()}};
  set.layout[program::Axis::context] = context;
  return set;
}

namespace {

// One stage of interleaved 1F1B. Virtual item k of a stage's forward order: micro-batches go in groups of `stages`,
// each group through every chunk before the next begins. All stages move on one clock: stage s runs forward item t - s
// and backward item t - s - ahead(s) at tick t, then everything made at that tick moves at once, in one fused group.
class InterleavedStage {
 public:
  InterleavedStage(int stage, int stages, int chunks, int micro_batches)
      : stage_(stage), stages_(stages), chunks_(chunks), total_(micro_batches * chunks) {}

  program::Program build() {
    sum_ = b_.buffer("sum", program::DType::f32, 1, program::BufferKind::persistent);
    weights_ = b_.buffer("weights", program::DType::f32, n * n, program::BufferKind::persistent);
    gradients_ = b_.buffer("gradients", program::DType::f32, n * n, program::BufferKind::persistent);
    for (const program::View& v : {sum_, weights_, gradients_})
      b_.emit(0, program::Fill{v, 0.5}, {"", program::Phase::setup});
    b_.begin_step();
    in_.resize(total_);
    out_ = gradient_ = in_;
    const int last_tick = stages_ + ahead(0) + total_;
    for (int tick = -1; tick <= last_tick; ++tick) {
      if (const int k = tick - stage_; valid(k)) run_forward(k);
      if (const int k = tick - stage_ - ahead(stage_); valid(k)) run_backward(k);
      exchange(tick);
    }
    b_.emit(2, program::AllReduce{0, sum_}, {"", program::Phase::finish}, {b_.last(0), b_.last(1)});
    return b_.take();
  }

 private:
  static constexpr std::int64_t n = 16;
  bool valid(int k) const { return k >= 0 && k < total_; }
  int ahead(int stage) const { return 2 * (stages_ - stage - 1) + (chunks_ - 1) * stages_; }
  int chunk_of(int k, bool forward) const {
    const int c = k % (stages_ * chunks_) / stages_;
    return forward ? c : chunks_ - 1 - c;
  }
  int micro_batch_of(int k) const { return k / (stages_ * chunks_) * stages_ + k % stages_; }
  std::size_t slot(int k, bool forward, int chunk_shift = 0) const {
    const int at = micro_batch_of(k) * chunks_ + chunk_of(k, forward) + chunk_shift;
    return at;
  }
  bool first_of_all(int stage, int k, bool forward) const { return stage == 0 && chunk_of(k, forward) == 0; }
  bool last_of_all(int stage, int k, bool forward) const {
    return stage == stages_ - 1 && chunk_of(k, forward) == chunks_ - 1;
  }
  program::Label label(int k, program::Phase phase) const {
    return {"chunk", phase, micro_batch_of(k), chunk_of(k, phase == program::Phase::forward)};
  }

  void run_forward(int k) {
    const program::Label l = label(k, program::Phase::forward);
    const std::size_t at = slot(k, true);
    if (first_of_all(stage_, k, true)) {
      in_[at] = b_.buffer("in", program::DType::f32, n * n);
      b_.emit(0, program::Fill{in_[at], 1}, l);
    }
    out_[at] = b_.buffer("out", program::DType::f32, n * n);
    b_.emit(0,
            program::Matmul{.a = in_[at],
                            .b = weights_,
                            .bias = {},
                            .aux = {},
                            .out = out_[at],
                            .bias_gradient = {},
                            .m = n,
                            .n = n,
                            .k = n},
            l);
  }
  void run_backward(int k) {
    const program::Label l = label(k, program::Phase::backward);
    const std::size_t at = slot(k, false);
    const program::View g = last_of_all(stage_, k, false) ? out_[at] : gradient_[at];
    b_.emit(0,
            program::Matmul{.a = g,
                            .b = in_[at],
                            .bias = {},
                            .aux = {},
                            .out = gradients_,
                            .bias_gradient = {},
                            .m = n,
                            .n = n,
                            .k = n,
                            .transpose_a = true,
                            .accumulate = true},
            l);
    if (first_of_all(stage_, k, false)) return;
    din_ = b_.buffer("din", program::DType::f32, n * n);
    b_.emit(0,
            program::Matmul{.a = g,
                            .b = weights_,
                            .bias = {},
                            .aux = {},
                            .out = din_,
                            .bias_gradient = {},
                            .m = n,
                            .n = n,
                            .k = n,
                            .transpose_b = true},
            l);
  }
  void exchange(int tick) {
    const auto group = b_.new_fused_group();
    const int before = (stage_ + stages_ - 1) % stages_, after = (stage_ + 1) % stages_;
    if (const int k = tick - stage_; valid(k) && !last_of_all(stage_, k, true)) {
      b_.emit(1, program::Send{{program::Axis::pipeline, +1}, out_[slot(k, true)]}, label(k, program::Phase::forward),
              {}, group);
    }
    if (const int k = tick - stage_ - ahead(stage_); valid(k) && !first_of_all(stage_, k, false)) {
      b_.emit(1, program::Send{{program::Axis::pipeline, -1}, din_}, label(k, program::Phase::backward), {}, group);
    }
    if (const int k = tick - before; valid(k) && !last_of_all(before, k, true)) {
      program::View& to = in_[slot(k, true, stage_ == 0 ? 1 : 0)];
      to = b_.buffer("received", program::DType::f32, n * n);
      b_.emit(1, program::Receive{{program::Axis::pipeline, -1}, to}, label(k, program::Phase::forward), {}, group);
    }
    if (const int k = tick - after - ahead(after); valid(k) && !first_of_all(after, k, false)) {
      program::View& to = gradient_[slot(k, false, stage_ == stages_ - 1 ? -1 : 0)];
      to = b_.buffer("received_gradient", program::DType::f32, n * n);
      b_.emit(1, program::Receive{{program::Axis::pipeline, +1}, to}, label(k, program::Phase::backward), {}, group);
    }
  }

  int stage_, stages_, chunks_, total_;
  program::ProgramBuilder b_{{"compute", "pipeline", "world"}};
  program::View sum_, weights_, gradients_, din_;
  std::vector<program::View> in_, out_, gradient_;  // by micro-batch and chunk
};

}  // namespace

program::ProgramSet interleaved(int stages, int chunks, int micro_batches) {
  program::ProgramSet set{
      {}, {{"world", program::AxisSet::all(), {}}}, program::AxisSet::of({program::Axis::pipeline}), {}};
  set.layout[program::Axis::pipeline] = stages;
  for (int s = 0; s < stages; ++s) set.roles.push_back(InterleavedStage(s, stages, chunks, micro_batches).build());
  return set;
}

program::ProgramSet gathered_parameters(int data, int layers) {
  constexpr program::StreamId compute = 0, gather = 1, scatter = 2, world = 3;
  const std::int64_t n = 32;
  const std::int64_t part = n * n / data;
  program::ProgramBuilder b({"compute", "gather", "scatter", "world"});
  const program::View shards = b.buffer("shards", program::DType::f32, part * layers, program::BufferKind::persistent);
  const program::View gradient_shards =
      b.buffer("gradient_shards", program::DType::f32, part * layers, program::BufferKind::persistent);
  const program::View sum = b.buffer("sum", program::DType::f32, 1, program::BufferKind::persistent);
  for (const program::View& v : {shards, gradient_shards, sum})
    b.emit(compute, program::Fill{v, 0.1}, {"", program::Phase::setup});
  b.begin_step();
  const program::View weights[2] = {b.buffer("weights0", program::DType::f32, n * n),
                                    b.buffer("weights1", program::DType::f32, n * n)};
  const auto fetch = [&](int layer, int slot, program::Phase phase) {
    b.emit(gather, program::AllGather{0, shards.part(layer * part, part), weights[slot % 2]},
           {"parameters", phase, 0, layer});
  };
  const auto product = [&](const program::View& a, const program::View& w, const program::View& out, bool transpose,
                           program::Label l) {
    b.emit(compute,
           program::Matmul{.a = a,
                           .b = w,
                           .bias = {},
                           .aux = {},
                           .out = out,
                           .bias_gradient = {},
                           .m = n,
                           .n = n,
                           .k = n,
                           .transpose_b = transpose},
           l);
  };
  std::vector<program::View> x{b.buffer("x", program::DType::f32, n * n)};
  b.emit(compute, program::Fill{x[0], 1}, {});
  int slot = 0;  // counts gathers over both passes: they alternate between the two buffers
  fetch(0, 0, program::Phase::forward);
  for (int l = 0; l < layers; ++l, ++slot) {
    if (l + 1 < layers) fetch(l + 1, slot + 1, program::Phase::forward);
    x.push_back(b.buffer("x", program::DType::f32, n * n));
    product(x[l], weights[slot % 2], x.back(), false, {"layer", program::Phase::forward, 0, l});
  }
  program::View g = x.back();
  fetch(layers - 1, slot, program::Phase::backward);
  for (int l = layers - 1; l >= 0; --l, ++slot) {
    if (l > 0) fetch(l - 1, slot + 1, program::Phase::backward);
    const program::Label label{"layer", program::Phase::backward, 0, l};
    const program::View gradient = b.buffer("gradient", program::DType::f32, n * n),
                        next = b.buffer("g", program::DType::f32, n * n);
    b.emit(compute,
           program::Matmul{.a = x[l],
                           .b = g,
                           .bias = {},
                           .aux = {},
                           .out = gradient,
                           .bias_gradient = {},
                           .m = n,
                           .n = n,
                           .k = n,
                           .transpose_a = true},
           label);
    b.emit(scatter, program::ReduceScatter{1, gradient, gradient_shards.part(l * part, part)},
           {"gradient", program::Phase::gradient_sync, 0, l});
    product(g, weights[slot % 2], next, true, label);
    g = next;
  }
  b.emit(world, program::AllReduce{2, sum}, {"", program::Phase::finish},
         {b.last(compute), b.last(gather), b.last(scatter)});
  // Gathering and scattering run at once and so need a communicator each, as they do on a GPU.
  program::ProgramSet set{{},
                          {{"gather", program::AxisSet::of({program::Axis::data}), {}},
                           {"scatter", program::AxisSet::of({program::Axis::data}), {}},
                           {"world", program::AxisSet::all(), {}}},
                          {},
                          {b.take()}};
  set.layout[program::Axis::data] = data;
  return set;
}

}  // namespace harness::test
