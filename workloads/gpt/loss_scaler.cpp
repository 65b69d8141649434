#include "workloads/gpt/loss_scaler.h"

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

LossScaler::LossScaler(program::ProgramBuilder& builder, const config::Settings& settings) : b_(builder) {
  if (settings.precision != config::Precision::fp16) return;
  const auto scalar = [&](const char* name, program::DType type, double value) {
    const program::View view = b_.buffer(name, type, 1, program::BufferKind::persistent);
    b_.emit(workloads::compute_stream, program::Fill{view, value}, {"loss scale", program::Phase::setup});
    return view;
  };
  scale_ = scalar("dynamic_loss_scale", program::DType::f32, initial_scale);
  good_steps_ = scalar("good_steps", program::DType::i32, 0);
  updates_ = scalar(workloads::updates_buffer, program::DType::i32, 0);
  found_inf_ = scalar("found_inf", program::DType::f32, 0);
}

void LossScaler::guard(std::vector<program::AdamW>& updates) {
  if (!active()) return;
  for (program::AdamW& update : updates) {
    b_.emit(workloads::compute_stream, program::CheckFinite{update.gradient, found_inf_},
            {"loss scale", program::Phase::optimizer});
    update.counter = updates_;
    update.scale = scale_;
    update.skip = found_inf_;
  }
  b_.emit(workloads::world_stream, program::AllReduce{world_group, found_inf_, program::Reduction::max},
          {"overflow", program::Phase::optimizer});
}

void LossScaler::end_step() {
  if (!active()) return;
  b_.emit(
      workloads::compute_stream,
      program::UpdateScale{.found_inf = found_inf_, .scale = scale_, .good_steps = good_steps_, .updates = updates_},
      {"loss scale", program::Phase::optimizer});
}

}  // namespace harness::gpt
