#pragma once

#include <gtest/gtest.h>

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

}  // namespace harness::test
