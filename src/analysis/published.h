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
  double causal = 0, noncausal = 0;  // attention over the causal half, and over the full square
  double parameters = 0;             // without norms, biases and positions
};
/// Returns nothing if a size is not known. docs/method.md has the formula.
std::optional<ModelFlop> flop_per_token(const config::Model& model);

/// A training step to compare with published ones.
struct StepOfJob {
  config::Model model;
  std::string gpu, precision;  // gpu: a hardware file's name
  std::int64_t gpus = 0;
  double tflops = 0;       // per GPU, by harness's FLOP count; 0: neither measured nor predicted
  bool predicted = false;  // tflops is predicted, not measured
};

/// Published steps similar to a step.
struct PublishedSteps {
  std::int64_t near = 0;  // number of similar steps
  /// For display: their range, how the step compares, and how the nearest differs from it. Says so if none is near; ""
  /// if too little is known of the step or the table is missing.
  std::string text;
};
/// Finds the steps of configs/published/steps.csv on the same GPU and in the same precision whose distance |log2 FLOP
/// per token| + |log2 sequence| / 2 + |log2 GPUs| / 4 is at most 1, or 2 if fewer than three are that near.
PublishedSteps published_steps(const StepOfJob& step);
/// Returns the "published for …" line for the baseline of a result, a GPT step on GPUs with a known hardware file; ""
/// for other results, and if no published step is near.
std::string published_line(const store::Result& result, const Summary& summary);
/// Returns that line for a step.
std::string published_line(const StepOfJob& step);

/// Describes published bus bandwidths of a collective (configs/published/busbw.csv) on this GPU, for 1 GiB and more, a
/// factor of two in size and nodes (single-node results only for a single node). `busbw`: in bytes per second.
std::string published_busbw(const std::string& gpu, std::int64_t nodes, const std::string& collective,
                            std::int64_t bytes, double busbw);

}  // namespace harness::analysis
