#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gathered_gradients.h"
#include "local_job.h"

namespace harness::test {

/// The results of a training job.
struct Trained {
  std::vector<float> losses;            // by step, the same on all ranks
  Gradients gradients, last_gradients;  // of the first step, and of the last
};

inline Trained train(LocalJob& job, const config::Model& model, const config::Settings& settings,
                     const program::Layout& layout, int steps) {
  Trained trained;
  job.run(1);
  trained.gradients = trained.last_gradients = gathered_gradients(job, model, settings, layout);
  if (steps > 1) {
    job.run(steps - 1);
    trained.last_gradients = gathered_gradients(job, model, settings, layout);
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

/// How near losses and gradients come to those of one rank, relative.
struct Nearness {
  double first_loss = 1e-5, later_losses = 1e-5, gradients = 1e-4;
};

/// Expects that the job trains as one rank does that takes the whole batch as one micro-batch, where nothing is added
/// up but in the order of the rows. Each gradient is compared by itself: a loss moves by 1e-4 only where a norm's
/// gradient lacks a sum over ranks.
inline void expect_trains_as_one_rank(const config::Model& model, const config::Settings& settings,
                                      const program::Layout& layout, const std::string& what,
                                      const Nearness& near = {}) {
  constexpr int steps = 2;
  static std::map<std::pair<std::string, std::int64_t>, Trained> known;  // by model and batch
  const auto [whole, is_new] = known.try_emplace({config::in_words(model), settings.global_batch_size});
  if (is_new) {
    config::Settings one;
    one.global_batch_size = one.micro_batch_size = settings.global_batch_size;
    whole->second = train(model, one, {}, steps);
  }
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
