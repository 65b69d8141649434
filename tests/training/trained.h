#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "local_job.h"
#include "workloads/gpt/buckets.h"
#include "workloads/gpt/parameters.h"

namespace harness::test {

/// Whole gradients by parameter name, with the shards of all tensor ranks joined.
using Gradients = std::map<std::string, std::vector<float>>;

/// Returns |a - b| / |b| in the 2-norm; 0 if both are zero.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double{a.at(i)} - double{b[i]}, 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

/// Copies a tensor rank's shard of a parameter to its place in the whole.
inline void put_shard(const std::vector<float>& own, const gpt::Parameter& p, int shard, std::vector<float>& whole) {
  std::int64_t from = 0, to = 0;
  for (const gpt::Slice& s : p.slices) {
    const std::int64_t run = s.part * s.inner, of_row = s.full * s.inner;
    whole.resize(std::max<std::size_t>(whole.size(), to + s.outer * of_row));
    for (std::int64_t row = 0; row < s.outer; ++row, from += run, to += of_row) {
      std::copy_n(own.begin() + from, run, whole.begin() + to + shard * run);
    }
  }
}

/// Returns the part of a parameter that the replica at these coordinates has in a flat f32 buffer, whole or of its own
/// parts. If replicas after it share gradients or optimizer state with it, joins their parts.
inline std::vector<float> owned(LocalJob& job, const std::string& buffer, const gpt::Parameter& p,
                                const std::vector<program::View>& buckets, int shards, const program::Layout& layout,
                                program::Coordinates at) {
  std::vector<float> values;
  for (int i = 0; i < shards; ++i, ++at[program::Axis::data]) {
    const gpt::OwnRange own = gpt::own_range(p, buckets, shards, at);
    if (own.count == 0) continue;
    const int rank = layout.rank(at);
    const bool whole =
        workloads::find_buffer(job.program(rank), buffer).count == buckets.front().offset + buckets.front().count;
    const auto part = job.read(rank, buffer, whole ? own.first : own.in_shard, own.count);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

/// Gathers a flat f32 buffer of all stages, by default the gradients of the last step, without fp16's initial loss
/// scale. Copies on several ranks must agree within `tolerance`: replicas, unsharded parameters on tensor ranks, the
/// two ends of a tied table.
inline Gradients gathered_gradients(LocalJob& job, const config::Model& model, const config::Settings& settings,
                                    const program::Layout& layout, double tolerance = 1e-6,
                                    const std::string& buffer = "gradient") {
  const auto scale = static_cast<float>(buffer == "gradient" ? gpt::first_gradient_scale(settings) : 1);
  Gradients whole;
  const int shards = gpt::shards_of(settings, layout);
  for (int stage = 0; stage < layout[program::Axis::pipeline]; ++stage) {
    const auto list = gpt::parameters(model, settings, layout, stage);
    const auto buckets = gpt::bucket_places(list, shards);
    for (const gpt::Parameter& p : list) {
      for (int replica = 0; replica < layout[program::Axis::data] / shards; ++replica) {
        std::vector<float> values;
        for (int shard = 0; shard < layout[program::Axis::tensor]; ++shard) {
          program::Coordinates at;
          at[program::Axis::tensor] = shard;
          at[program::Axis::data] = replica * shards;
          at[program::Axis::pipeline] = stage;
          auto own = owned(job, buffer, p, buckets, shards, layout, at);
          for (float& value : own) value /= scale;
          if (!p.sharded && shard > 0) {
            EXPECT_LE(distance(own, values), tolerance) << p.name << " on tensor rank " << shard;
          }
          put_shard(own, p, p.sharded ? shard : 0, values);
        }
        const auto [known, is_new] = whole.emplace(p.name, values);
        if (is_new) continue;
        EXPECT_LE(distance(values, known->second), tolerance)
            << p.name << ", stage " << stage << ", replica " << replica;
      }
    }
  }
  return whole;
}

/// Compares each parameter separately: a wrong sum in a bias vanishes in the norm of everything, and in the loss.
inline void expect_equal(const Gradients& ours, const Gradients& theirs, double tolerance, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (const auto& [name, values] : theirs) {
    ASSERT_TRUE(ours.contains(name)) << what << ", " << name;
    EXPECT_LE(distance(ours.at(name), values), tolerance) << what << ", " << name;
  }
}

/// The results of a training job.
struct Trained {
  std::vector<float> losses;  // by step, equal on all ranks
  Gradients gradients;        // of the first step
};

inline Trained train(LocalJob& job, const config::Model& model, const config::Settings& settings,
                     const program::Layout& layout, int steps) {
  Trained trained;
  job.run(1);
  trained.gradients = gathered_gradients(job, model, settings, layout);
  if (steps > 1) {
    job.run(steps - 1);
    gathered_gradients(job, model, settings, layout);  // checks that ranks also agree in the last step
  }
  trained.losses = job.losses(0);
  for (int rank = 1; rank < layout.ranks(); ++rank) EXPECT_EQ(job.losses(rank), trained.losses) << "rank " << rank;
  return trained;
}

inline Trained train(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
                     int steps = 3) {
  LocalJob job(model, settings, layout);
  return train(job, model, settings, layout, steps);
}

/// Relative tolerances of losses and gradients against those of one rank.
struct Nearness {
  double first_loss = 1e-5, later_losses = 1e-5, gradients = 1e-4;
};

/// Expects that the job trains like one rank that takes the whole batch, with the same documents, as one micro-batch,
/// where sums run only in row order. Each gradient is compared separately: if a norm's gradient lacks a sum over ranks,
/// the loss moves only by 1e-4.
inline void expect_trains_as_one_rank(const config::Model& model, const config::Settings& settings,
                                      const program::Layout& layout, const std::string& what,
                                      const Nearness& near = {}) {
  constexpr int steps = 2;
  config::Settings one;
  one.global_batch_size = one.micro_batch_size = settings.global_batch_size;
  one.sequences = settings.sequences;
  one.batching = settings.batching;
  static std::map<std::string, Trained> known;  // by model and settings
  std::string key = config::in_words(model);
  for (const config::Variable& variable : config::registry()) key += " " + variable.print(one);
  const auto [whole, is_new] = known.try_emplace(key);
  if (is_new) whole->second = train(model, one, {}, steps);
  const Trained ours = train(model, settings, layout, steps);
  const std::vector<float>& losses = whole->second.losses;
  const std::string where = fmt::format("{}, {}", what, program::text_of(layout));
  ASSERT_EQ(ours.losses.size(), losses.size()) << where;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(ours.losses[i] / losses[i], 1, i == 0 ? near.first_loss : near.later_losses) << where;
  }
  expect_equal(ours.gradients, whole->second.gradients, near.gradients, where);
}

}  // namespace harness::test
