#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "data/loader.h"
#include "local_job.h"
#include "support/files.h"
#include "trained.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;

constexpr const char* scale_buffer = "dynamic_loss_scale";

// Every step trains on the same batch, so the loss falls and shows the number of updates.
class LossScaling : public ::testing::Test {
 protected:
  static inline const config::Model four_layers{"tiny", 4, 64, 4, 128, 32};
  static constexpr std::int64_t sequences = 8;

  LossScaling() {
    std::ofstream out(folder_ / "tokens.bin", std::ios::binary);
    data::make_token_file(
        sequences * (four_layers.sequence + 1), four_layers.vocab, 3,
        [&](std::span<const char> piece) { out.write(piece.data(), static_cast<std::streamsize>(piece.size())); });
  }
  config::Settings settings(config::Precision precision) const {
    config::Settings s;
    s.precision = precision;
    s.global_batch_size = sequences;
    s.micro_batch_size = 1;
    s.bucket_size_bytes = 64 << 10;  // cuts layers
    s.data_file = folder_ / "tokens.bin";
    s.loader_workers = 0;
    return s;
  }
  std::vector<float> losses_in_fp32(int steps) const {
    LocalJob job(four_layers, settings(config::Precision::fp32), {});
    job.run(steps);
    return job.losses(0);
  }

 private:
  test::TemporaryFolder folder_;
};

// Replaces PyTorch's initial scale, and the number of updates before it grows.
program::ProgramSet scaled(program::ProgramSet set, double initial_scale, std::int64_t growth_interval = 2000) {
  for (program::Program& role : set.roles) {
    for (program::Operation& op : role.init) {
      auto* fill = std::get_if<program::Fill>(&op.action);
      if (fill != nullptr && role.buffer_of(fill->out).name == scale_buffer) fill->value = initial_scale;
    }
    for (program::Operation& op : role.step) {
      if (auto* update = std::get_if<program::UpdateScale>(&op.action)) update->growth_interval = growth_interval;
    }
  }
  return set;
}

// Makes this role check 2^10 times its gradients in f16, so that it finds an overflow at scales at which no gradients
// overflow, neither its own nor those of others.
program::Program with_early_overflow(const program::Program& p) {
  return test::rebuilt(p, p.step, [](program::ProgramBuilder& b, program::Operation& op) {
    auto* check = std::get_if<program::CheckFinite>(&op.action);
    if (check == nullptr) return;
    const std::int64_t count = check->in.count;
    const program::View larger = b.buffer("larger", program::DType::f32, count),
                        narrow = b.buffer("narrow", program::DType::f16, count);
    program::View from = check->in;
    for (int doubled = 0; doubled < 10; ++doubled) {
      b.emit(op.stream,
             program::ResidualAdd{.in = from, .bias = {}, .residual = from, .out = larger, .rows = 1, .width = count},
             op.label);
      from = larger;
    }
    b.emit(op.stream, program::Convert{larger, narrow}, op.label);
    b.emit(op.stream, program::Convert{narrow, larger}, op.label);
    check->in = larger;
  });
}

float scale_of(LocalJob& job, int rank) {
  return job.read(rank, scale_buffer, 0, 1)[0];
}
int updates_of(LocalJob& job, int rank) {
  return std::bit_cast<std::int32_t>(job.read(rank, workloads::updates_buffer, 0, 1)[0]);
}

// Runs `steps` steps and expects in each the fp32 loss after as many updates. Returns the number of skipped updates.
int skipped_while_it_follows(const std::vector<float>& in_fp32, LocalJob& job, int steps, const std::string& what) {
  for (int step = 0; step < steps; ++step) {
    const int updates = updates_of(job, 0);
    job.run(1);
    const std::vector<float> losses = job.losses(0);
    EXPECT_NEAR(losses[step] / in_fp32[updates], 1, 2e-2) << what << ", step " << step;
    if (updates == 0) {
      EXPECT_EQ(losses[step], losses[0]) << what << ", step " << step;
    }
  }
  return steps - updates_of(job, 0);
}

TEST_F(LossScaling, AnOverflowOnOneRankIsSkippedOnAllAndTheScaleGrowsBack) {
  constexpr float initial_scale = 65536;
  constexpr int interval = 2, steps = 30;
  const config::Settings s = settings(config::Precision::fp16);
  for (const int stages : {2, 4}) {
    const program::Layout layout = layout_of(1, stages, 1);
    const program::ProgramSet honest = scaled(gpt::programs(four_layers, s, layout), initial_scale, interval);
    {
      LocalJob job(honest, four_layers, s);
      job.run(1);
      EXPECT_EQ(updates_of(job, 0), 1) << "without the planted overflow";
    }
    program::ProgramSet planted = honest;
    planted.roles[1] = with_early_overflow(planted.roles[1]);
    LocalJob job(planted, four_layers, s);
    float scale = initial_scale;
    int updates = 0, good_steps = 0, grown = 0;
    std::vector<float> master = job.read(0, "master", 0, 1000);
    for (int step = 0; step < steps; ++step) {
      job.run(1);
      const bool overflow = updates_of(job, 0) == updates;
      if (overflow) {
        scale /= 2;
        good_steps = 0;
      } else if (++updates, ++good_steps == interval) {
        scale *= 2;
        good_steps = 0;
        ++grown;
      }
      for (int rank = 0; rank < stages; ++rank) {
        EXPECT_EQ(updates_of(job, rank), updates) << "rank " << rank << ", step " << step;
        EXPECT_EQ(scale_of(job, rank), scale) << "rank " << rank << ", step " << step;
      }
      const std::vector<float> now = job.read(0, "master", 0, 1000);
      EXPECT_EQ(now == master, overflow) << "step " << step;
      master = now;
      if (step == 0) {
        EXPECT_TRUE(overflow);
      }
    }
    EXPECT_GT(updates, steps / 3);
    EXPECT_GT(grown, 3);
  }
}

// A huge scale is halved until it fits. The first update after skipped ones is also the optimizer's first: its bias
// correction is that of step 1.
TEST_F(LossScaling, GoesWithEveryLayoutAndSharding) {
  constexpr int steps = 30;
  using config::Sharding;
  const std::vector<float> in_fp32 = losses_in_fp32(steps);
  struct Cell {
    int tensor, stages, replicas;
    Sharding sharding;
    bool recompute;
  };
  for (const Cell& cell : {Cell{1, 1, 1, Sharding::none, false}, Cell{2, 2, 1, Sharding::none, true},
                           Cell{1, 2, 2, Sharding::optimizer, true}, Cell{1, 1, 2, Sharding::gradients, false},
                           Cell{2, 1, 2, Sharding::parameters, true}}) {
    const program::Layout layout = layout_of(cell.tensor, cell.stages, cell.replicas);
    config::Settings s = settings(config::Precision::fp16);
    s.sharding = cell.sharding;
    s.sequence_parallel = cell.tensor > 1;
    if (cell.recompute) s.recompute = config::Recompute::full;
    LocalJob job(scaled(gpt::programs(four_layers, s, layout), 0x1p32), four_layers, s);
    const std::string what = fmt::format("{}, sharding {}", program::text_of(layout), static_cast<int>(cell.sharding));
    const int skipped = skipped_while_it_follows(in_fp32, job, steps, what), updates = steps - skipped;
    EXPECT_GE(skipped, 3) << what;
    EXPECT_GE(updates, 10) << what;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      EXPECT_EQ(updates_of(job, rank), updates) << what << ", rank " << rank;
      EXPECT_EQ(scale_of(job, rank), std::ldexp(1.0F, 32 - skipped)) << what << ", rank " << rank;
    }
    EXPECT_EQ(job.losses(layout.ranks() - 1), job.losses(0)) << what;
  }
}

}  // namespace
}  // namespace harness
