// The whole GPT step on real arithmetic and real collectives: every layout is the same computation.
#include "workloads/gpt/gpt.h"
#include "ranks.h"
#include "rig.h"
#include "workloads/workload.h"

namespace harness::test {
namespace {

constexpr int steps = 6;

config::Model tiny() {
  config::Model m;
  m.name = "tiny";
  m.layers = 2;
  m.hidden = 32;
  m.heads = 4;
  m.vocab = 64;
  m.sequence = 24;
  return m;
}

struct Case {
  const char* name;
  int tensor, data, pipeline;
  bool overlap = true;
  std::int64_t micro_batch = 1;
  config::AllReduceAlgorithm algorithm = config::AllReduceAlgorithm::ring;
  int threads = 1;
};

// The losses of the first steps, as the last stage recorded them.
std::vector<float> losses(const Case& c, config::Precision precision) {
  config::Settings settings;
  settings.precision = precision;
  settings.global_batch_size = 8;
  settings.micro_batch_size = c.micro_batch;
  settings.layout = {{program::Axis::tensor, c.tensor}, {program::Axis::pipeline, c.pipeline}};
  settings.overlap_grad_reduce = c.overlap;
  settings.bucket_size_bytes = 20000;
  settings.allreduce_algorithm = c.algorithm;
  settings.repeat_batch = true;
  settings.threads = c.threads;
  program::Layout layout;
  layout[program::Axis::tensor] = c.tensor;
  layout[program::Axis::data] = c.data;
  layout[program::Axis::pipeline] = c.pipeline;
  const program::ProgramSet set = program::lower(workloads::build_programs(tiny(), settings, layout),
                                                 config::traits_of(config::BackendKind::cpu).fused);
  const auto program = [&](int rank) { return &set.roles[set.role_of(layout.coordinates(rank))]; };
  Ranks ranks(layout, set.groups, program, settings);
  ranks.errors = ranks.each([&](int r) {
    const auto inputs = workloads::make_inputs(tiny(), settings, layout, layout.coordinates(r), 1);
    ranks[r].initialize();
    ranks[r].run(0, steps, *inputs);
  });
  rethrow_first(ranks.errors);
  const int last = layout.ranks() - 1;
  const auto& buffers = program(last)->buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].name != workloads::losses_buffer) continue;
    std::vector<float> out(steps);
    ranks[last].read({static_cast<program::BufferId>(b), 0, steps}, std::as_writable_bytes(std::span(out)));
    return out;
  }
  return {};
}

TEST(Gpt, EveryLayoutGivesTheSameLosses) {
  const auto want = losses({"one rank", 1, 1, 1}, config::Precision::fp32);
  ASSERT_EQ(want.size(), steps);
  EXPECT_NEAR(want[0], std::log(64.0), 0.2);   // untrained: as likely as any other token
  EXPECT_LT(want[steps - 1], want[0] - 0.01);  // the same batch again and again: it learns
  const Case cases[] = {{"two threads, larger micro-batches", 1, 1, 1, true, 4, config::AllReduceAlgorithm::ring, 2},
                        {"data parallel", 1, 2, 1},
                        {"data parallel, no overlap", 1, 4, 1, false, 2, config::AllReduceAlgorithm::halving_doubling},
                        {"data parallel, bcube", 1, 4, 1, true, 1, config::AllReduceAlgorithm::bcube},
                        {"tensor parallel", 2, 1, 1, true, 2},
                        {"pipeline parallel", 1, 1, 2},
                        {"all three", 2, 2, 2, true, 1, config::AllReduceAlgorithm::halving_doubling}};
  for (const Case& c : cases) {
    const auto got = losses(c, config::Precision::fp32);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << c.name << ", step " << i;
  }
}

TEST(Gpt, Bf16FollowsFp32) {
  const auto want = losses({"one rank", 1, 1, 1}, config::Precision::fp32);
  for (const Case& c : {Case{"one rank", 1, 1, 1}, Case{"all three", 2, 2, 2}}) {
    const auto got = losses(c, config::Precision::bf16);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.02) << c.name << ", step " << i;
    EXPECT_LT(got[steps - 1], got[0] - 0.01);
  }
}

}  // namespace
}  // namespace harness::test
