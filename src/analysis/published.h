#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/summary.h"
#include "config/model.h"
#include "store/result.h"

namespace harness::analysis {

/// The FLOP of a model for one token and all passes, and its weights.
struct ModelFlop {
  double causal = 0, noncausal = 0;  // attention at half the square, and in full
  double parameters = 0;             // without norms, biases and positions
};
/// Nothing where a size is not known. docs/method.md has the formula.
std::optional<ModelFlop> flop_per_token(const config::Model& model);

/// A training step to be compared with published ones.
struct StepOfJob {
  config::Model model;
  std::string gpu, precision;  // gpu: a hardware file's name
  std::int64_t gpus = 0;
  double tflops = 0;       // per GPU, by our count; 0: neither measured nor predicted
  bool predicted = false;  // tflops
};

/// Published steps that are like a step.
struct PublishedSteps {
  std::int64_t near = 0;  // how many there are
  /// For people: their range, how the step compares, and how the nearest differs from it. Where none is near, it says
  /// so; "" where the step is not known well enough or the table is not there.
  std::string text;
};
/// The steps of configs/published/steps.csv on the same GPU and in the same precision whose distance
/// |log2 FLOP per token| + |log2 sequence| / 2 + |log2 GPUs| / 4 is at most 1, or 2 where there are fewer than three.
PublishedSteps published_steps(const StepOfJob& step);
/// "published for …" of the baseline of a result: a GPT step on GPUs whose hardware file is known; "" for others, and
/// where no published step is near.
std::string published_line(const store::Result& result, const Summary& summary);
/// Says that line of a step.
std::string published_line(const StepOfJob& step);

/// Says what others reached with a collective (configs/published/busbw.csv): of this GPU, at most twice or half as many
/// nodes, 1 GiB and more. `busbw`: in bytes per second.
std::string published_busbw(const std::string& gpu, std::int64_t nodes, const std::string& collective,
                            std::int64_t bytes, double busbw);

}  // namespace harness::analysis
