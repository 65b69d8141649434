// Activations that a step keeps for its backward passes, memory that its arena shares, and published figures of both.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "closed_formulas.h"
#include "gpt_jobs.h"
#include "program/builder.h"
#include "program/memory.h"
#include "support/settings.h"

namespace harness::workloads {
namespace {

using config::PipelineSchedule;
using config::Recompute;
using config::Sharding;

using ForwardPass = std::pair<std::int32_t, std::int32_t>;  // micro-batch and layer, as operations are labelled

// Gathered weights belong to no pass, although passes read them.
bool gathers_weights(const program::Program& program, const program::Operation& op) {
  const auto* gather = std::get_if<program::AllGather>(&op.action);
  return gather != nullptr && program.buffer_of(gather->in).kind == program::BufferKind::persistent;
}

// Returns the bytes that each forward pass of a step keeps for backward passes: those of transient buffers that it
// writes first and that a backward pass reads. Excludes recomputed buffers, and others that are live at the memory's
// peak, such as gradients.
std::map<ForwardPass, std::int64_t> saved_bytes(const program::Program& program) {
  std::vector<const program::Label*> writer(program.buffers.size(), nullptr);  // the first writer
  std::vector<char> counted(program.buffers.size(), 0), of_weights(program.buffers.size(), 0);
  std::map<ForwardPass, std::int64_t> bytes;
  for (const program::Operation& op : program.step) {
    program::visit_accesses(op.action, [&](program::Access access, const program::View& view) {
      const std::size_t b = view.buffer;
      const program::Label* first = writer[b];
      if (access != program::Access::read && first == nullptr) {
        writer[b] = &op.label;
        of_weights[b] = gathers_weights(program, op) ? 1 : 0;
      }
      const bool kept = of_weights[b] == 0 && access != program::Access::write &&
                        op.label.phase == program::Phase::backward && first != nullptr &&
                        first->phase == program::Phase::forward && !first->recomputed;
      if (!kept || counted[b] != 0 || program.buffers[b].kind != program::BufferKind::transient) return;
      counted[b] = 1;
      bytes[{first->micro_batch, first->layer}] += program.buffers[b].bytes();
    });
  }
  return bytes;
}

std::map<ForwardPass, std::int64_t> kept(const Job& j, int stage = 0) {
  return saved_bytes(build(j).roles[static_cast<std::size_t>(stage)]);
}

std::int64_t all_kept(const Job& j) {
  std::int64_t sum = 0;
  for (const program::Program& role : build(j).roles) {
    for (const auto& [pass, bytes] : saved_bytes(role)) sum += bytes;
  }
  return sum;
}

std::int64_t transient_bytes(const Job& j, int stage = 0) {
  return program::plan_arena(build(j).roles[static_cast<std::size_t>(stage)]).transient_bytes;
}

void recompute(Job& j) {
  j.settings.recompute = Recompute::full;
}

TEST(Kept, OfALayerEqualsTheClosedFormula) {
  for (const int t : {1, 2, 4}) {
    for (const char* lever : {"", "sequence_parallel=true", "recompute=full", "sequence_parallel=true recompute=full",
                              "attention=unfused", "attention=unfused recompute=selective"}) {
      Job j = small_job(t, 1);
      test::set(j.settings, lever);
      const auto bytes = kept(j);
      for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
        for (int layer = 1; layer < 4; ++layer)
          EXPECT_EQ(bytes.at({micro_batch, layer}), closed::kept_of_layer(j)) << lever << ", TP" << t;
      }
    }
    // With tensor ranks, each norm writes the stream that it keeps, except the first, which reads the embedding.
    const Job j = small_job(t, 1);
    EXPECT_EQ(kept(j).at({0, 0}), closed::kept_of_layer(j) - (t > 1 ? small_stream : 0));
  }
}

TEST(Kept, OfEmbeddingAndHeadAreTheEndsOfTheStreamAndTheLogits) {
  const std::int64_t norm = small_stream + 4 * small_rows * 2, logits = 2 * small_rows * 256;
  EXPECT_EQ(kept(small_job(1, 1)).at({0, -1}), small_stream + norm + logits);
  // The first norm reads the embedding, or the stream received from the previous stage. A stage does not keep the
  // stream that it sends.
  const Job j = small_job(1, 2);
  const std::int64_t layer = closed::kept_of_layer(j);
  const auto first = kept(j, 0), last = kept(j, 1);
  EXPECT_EQ(first.at({0, -1}), small_stream);
  EXPECT_EQ(first.at({0, 0}), layer);
  EXPECT_EQ(first.at({0, 1}), layer - small_stream);
  EXPECT_EQ(last.at({0, -1}), norm + logits);
  EXPECT_EQ(last.at({0, 2}), small_stream + layer);
  EXPECT_EQ(last.at({0, 3}), layer);
}

TEST(Kept, RecomputationOfSomeLayersKeepsTheOthersWhole) {
  Job some = small_job(2, 2);
  recompute(some);
  some.settings.recompute_layers = 1;
  const auto bytes = kept(some, 1);
  EXPECT_EQ(bytes.at({0, 2}), small_stream);  // its input, which was received
  EXPECT_EQ(bytes.at({0, 3}), closed::kept_of_layer(small_job(2, 2)));
}

TEST(Kept, IsTheSameWhateverTheScheduleAndTheShardingOfWeights) {
  Job j = job({"m", 9, 64, 8, 256, 16}, 1, 4, 1, 8);
  const std::int64_t whole = all_kept(j);
  for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::interleaved}) {
    j.settings.pipeline_schedule = schedule;
    EXPECT_EQ(all_kept(j), whole);
  }
  EXPECT_EQ(kept(sharded(1, 1, 2, 2, Sharding::parameters)), kept(sharded(1, 1, 2, 2)));  // gathered weights
}

// Checks that operations on buffers that share memory are ordered.
void expect_arena_sound(const program::Program& p) {
  const program::Arena arena = program::plan_arena(p);
  const program::HappensBefore before(p.step, p.streams.size());
  struct Use {
    program::OperationId op;
    program::StreamId stream;
    std::int64_t begin, end;
    program::BufferId buffer;
  };
  std::vector<Use> uses;
  for (std::size_t i = 0; i < p.step.size(); ++i) {
    const program::Operation& operation = p.step[i];
    program::visit_accesses(operation.action, [&](program::Access, const program::View& view) {
      const program::Buffer& buffer = p.buffer_of(view);
      if (buffer.kind != program::BufferKind::transient) return;
      const std::int64_t begin = arena.offset_bytes.at(view.buffer) + view.offset * program::size_of(buffer.type);
      const std::int64_t end = begin + view.all_parts().count * program::size_of(buffer.type);
      uses.push_back({static_cast<program::OperationId>(i), operation.stream, begin, end, view.buffer});
      EXPECT_LE(end, arena.bytes);
      EXPECT_GE(begin, arena.persistent_bytes);
    });
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = i + 1; j < uses.size(); ++j) {
      const Use &a = uses[i], &b = uses[j];
      if (a.buffer == b.buffer || a.op == b.op || a.end <= b.begin || b.end <= a.begin) continue;
      EXPECT_TRUE(before.ordered(a.op, a.stream, b.op))
          << program::title(p.step[a.op]) << " and " << program::title(p.step[b.op]) << " share memory";
    }
  }
}

TEST(Arena, SharesMemoryOnlyWhereOrdered) {
  Job whole = small_job(2, 2, 2, 4);
  whole.settings.sequence_parallel = true;
  whole.settings.pipeline_schedule = PipelineSchedule::interleaved;
  Job updates = sharded(1, 1, 2, 2, Sharding::parameters);
  updates.settings.overlap_optimizer = true;
  updates.settings.grad_reduce_type = program::DType::bf16;
  for (const Job& j : {small_job(1, 2, 1), whole, updates}) {
    for (const program::Program& role : build(j).roles) expect_arena_sound(role);
  }
}

// Recomputation keeps only one layer whole, while it computes its gradients. Short-lived buffers have other sizes than
// kept ones, and belong to two streams: neither may fragment the arena.
TEST(Arena, ShrinksByWhatIsNotKept) {
  const auto shrunk_of_freed = [](const Job& from, const Job& to) {
    return static_cast<double>(transient_bytes(from) - transient_bytes(to)) /
           static_cast<double>(all_kept(from) - all_kept(to));
  };
  for (const int t : {1, 2}) {
    Job keeping = small_job(t, 1, 1, 1);
    keeping.model.layers = 16;
    Job again = keeping, divided = keeping;
    recompute(again);
    EXPECT_GT(shrunk_of_freed(keeping, again), 14.0 / 16) << t;
    EXPECT_LE(shrunk_of_freed(keeping, again), 1) << t;
    if (t == 1) continue;
    divided.settings.sequence_parallel = true;
    EXPECT_GT(shrunk_of_freed(keeping, divided), 0.8);
    Job both = divided;
    recompute(both);
    EXPECT_GT(shrunk_of_freed(again, both), 0.8);
  }
}

// With gpipe, memory grows with the number of micro-batches. With 1F1B and interleaved schedules it stops growing once
// they cover the pipeline.
TEST(Arena, HoldsTheMicroBatchesInFlight) {
  const auto peak = [](PipelineSchedule schedule, int stage, std::int64_t micro_batches) {
    Job j = job({"m", 9, 64, 8, 256, 16}, 1, 4, 1, micro_batches);
    j.settings.pipeline_schedule = schedule;
    j.settings.bucket_size_bytes = 32 << 10;
    return static_cast<double>(transient_bytes(j, stage));
  };
  using enum PipelineSchedule;
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_NEAR(peak(gpipe, stage, 32) / peak(gpipe, stage, 8) / 4, 1, 0.1);
    for (const PipelineSchedule schedule : {one_forward_one_backward, interleaved})
      EXPECT_LE(peak(schedule, stage, 32), peak(schedule, stage, 8) * 1.12);  // allows for fragmentation
  }
  // The first stage holds four micro-batches; the last stage holds one, and its logits.
  EXPECT_GT(peak(one_forward_one_backward, 0, 32), 4.0 / 3 * peak(one_forward_one_backward, 3, 32));
}

// Live at once: the table's gradients from the head to the embedding, the running layer's, and those being reduced,
// with their results.
TEST(Arena, GradientsOfAPassTakeTurnsInTheirMemory) {
  for (const Sharding sharding : {Sharding::gradients, Sharding::parameters}) {
    for (const bool beside : {false, true}) {
      Job whole = sharded(1, 1, 2, 2, Sharding::none);
      whole.model.layers = 16;
      whole.settings.overlap_optimizer = beside;
      Job j = whole;
      j.settings.sharding = sharding;
      std::int64_t layer = 0, ends = 0;
      for (const auto& p : gpt::parameters(j.model, j.settings, j.layout, 0)) {
        if (p.id.layer == 3) layer += p.count();
        if (p.id.layer < 0) ends += p.count();
      }
      EXPECT_LT(transient_bytes(j) - transient_bytes(whole), 4 * (ends + 5 * layer))
          << static_cast<int>(sharding) << beside;
    }
  }
}

// Layers that are gathered for each pass share prefetch_layers + 1 buffers.
TEST(Arena, HasRoomForTheLayersThatAreGatheredAhead) {
  for (const int ahead : {0, 1, 2}) {
    Job j = sharded(1, 1, 4, 2, Sharding::parameters);
    j.settings.prefetch_layers = ahead;
    EXPECT_EQ(bytes_of(build(j).roles[0], {"layer_weights"}), (ahead + 1) * 2 * elements_of_bucket(j, 1));
  }
}

// Published memory (docs/method.md, "Memory"), recomputed from Programs.

constexpr double gib = 1 << 30;

// Korthikanti et al. 2022, table 3, and the memory in figure 1: 16-bit numbers, tensor and sequence parallelism over 8
// ranks, selective recomputation, vocabulary 51200, sequence 2048.
struct Published {
  const char* name;
  std::int64_t layers, hidden, heads;
  int pipeline, chunks;  // chunks of a stage; 1: not interleaved
  std::int64_t micro_batch_size;
  double activations_gib, parameters_gib;
};
constexpr Published published[] = {{"22B", 48, 6144, 64, 1, 1, 4, 9.56, 45.6},
                                   {"175B", 96, 12288, 96, 8, 3, 1, 12.35, 45.6},
                                   {"530B", 105, 20480, 128, 35, 3, 1, 23.08, 31.6},
                                   {"1T", 128, 25600, 160, 64, 1, 1, 26.56, 33.0}};

// Memory of one rank of a middle stage, in GiB; 22B has only one stage.
struct Planned {
  double activations = 0;  // of as many layers as the first stage keeps at once with 1F1B
  double parameters = 0;   // weights, gradients and optimizer state of its layers
};

Planned planned(const Published& p) {
  Job j = job({p.name, p.layers, p.hidden, p.heads, 51200, 2048}, 8, p.pipeline, 1, 1, p.micro_batch_size);
  j.settings.precision = config::Precision::bf16;
  j.settings.sequence_parallel = true;
  j.settings.attention = config::AttentionKind::unfused;
  j.settings.recompute = config::Recompute::selective;
  const int stage = p.pipeline / 2;
  const program::Program program = gpt::programs(j.model, j.settings, j.layout).roles[static_cast<std::size_t>(stage)];
  Planned out;
  // The second layer of a stage writes all of its activations itself. The first stage keeps p micro-batches of L / p
  // layers: activations of L layers for any p.
  const auto layer = static_cast<std::int32_t>(stage * (p.layers / p.pipeline) + 1);
  out.activations = static_cast<double>(p.layers * saved_bytes(program).at({0, layer})) / gib;
  for (const program::Buffer& buffer : program.buffers) {
    const bool state = buffer.name == "master" || buffer.name == "weights" || buffer.name == "gradient" ||
                       buffer.name == "moment1" || buffer.name == "moment2";
    if (state) out.parameters += static_cast<double>(buffer.bytes()) / gib;
  }
  for (const gpt::Parameter& parameter : gpt::parameters(j.model, j.settings, j.layout, stage)) {
    if (parameter.id.layer < 0) out.parameters -= 18 * static_cast<double>(parameter.count()) / gib;  // embeddings
  }
  return out;
}

TEST(PublishedMemory, IsThatOfProgramsAfterTheStatedDifferences) {
  for (const Published& p : published) {
    const Planned ours = planned(p);
    const double interleaving = p.chunks == 1 ? 1 : 1 + (p.pipeline - 1.0) / (p.pipeline * p.chunks);
    const double compared = ours.activations * 34 / 32 * interleaving;
    EXPECT_NEAR(compared / p.activations_gib, 1, 0.01) << p.name;
    EXPECT_NEAR(ours.parameters / p.parameters_gib, 1, 0.01) << p.name;
  }
}

}  // namespace
}  // namespace harness::workloads
