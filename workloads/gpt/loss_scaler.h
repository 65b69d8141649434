#pragma once

#include <vector>

#include "config/settings.h"
#include "program/builder.h"

namespace harness::gpt {

/// Dynamic loss scaling of steps in fp16, with the rules and defaults of torch.amp.GradScaler (PyTorch,
/// torch/amp/grad_scaler.py). The loss's gradient, and with it every gradient up to the optimizer, is multiplied by a
/// scale. If a gradient overflows on any rank, all ranks leave out their update and halve the scale; after
/// growth_interval updates in a row they double it. Scale and counters are device memory and nothing is decided on the
/// host, so that a captured step replays. In other precisions the scaler is not active: its views are absent and its
/// calls emit nothing.
class LossScaler {
 public:
  static constexpr double initial_scale = 65536;

  /// Emits init operations.
  LossScaler(program::ProgramBuilder& builder, const config::Settings& settings);

  /// [1] f32: the factor of this step's gradients.
  program::View scale() const { return scale_; }
  /// Makes the updates, which come after everything that writes a gradient, depend on all gradients of the job: emits
  /// the check of those of this rank and its all-reduce over the world.
  void guard(std::vector<program::AdamW>& updates);
  /// After the updates.
  void end_step();

 private:
  bool active() const { return scale_.present(); }

  program::ProgramBuilder& b_;
  program::View scale_, good_steps_, updates_, found_inf_;
};

/// The factor of the gradients that the first step leaves in memory.
inline double first_gradient_scale(const config::Settings& settings) {
  return settings.precision == config::Precision::fp16 ? LossScaler::initial_scale : 1;
}

}  // namespace harness::gpt
