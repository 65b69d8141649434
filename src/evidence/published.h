#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/hardware.h"
#include "config/model.h"
#include "evidence/answer.h"

namespace harness::evidence {

/// The hardware that the person names, else that of a GPU as a log or a test names it ("H100 80GB HBM3"); nothing where
/// it is not known, or a hardware file of the person's own cannot be read.
std::optional<config::Hardware> hardware_of(const std::string& gpu, const Gaps& gaps);

/// A training step to be compared with published ones.
struct StepOfJob {
  config::Model model;
  std::string gpu, precision;  // gpu: a hardware file's name
  std::int64_t gpus = 0;
  double tflops = 0;  // per GPU, by our count; 0: not measured
};

/// Says what others reached with steps like this one (configs/published/steps.csv), and how this one compares: a line
/// for people; "" where the step is not known well enough or the table is not there. Alike are steps of the same GPU
/// and precision whose distance |log2 FLOP per token| + |log2 sequence| / 2 + |log2 GPUs| / 4 is at most 1, or 2 where
/// there are fewer than three.
std::string published_steps(const StepOfJob& step);
/// Says it of a collective (configs/published/busbw.csv): of this GPU, at most twice or half as many nodes, 1 GiB and
/// more. `busbw`: in bytes per second.
std::string published_busbw(const std::string& gpu, std::int64_t nodes, const std::string& collective,
                            std::int64_t bytes, double busbw);

}  // namespace harness::evidence
