#include "config/usual_calibration.h"

#include <fmt/format.h>

namespace harness::config {

UsualCalibration usual_calibration(const Settings& s) {
  const char* today = "megatron-2025";
  const int tensor = s.layout[program::Axis::tensor], stages = s.layout[program::Axis::pipeline];
  if (s.workload != training_workload) return {"harness", "one operation of this program"};
  if (s.precision == Precision::fp16 && s.attention == AttentionKind::unfused)
    return {"megatron-2022", "precision fp16 with attention unfused"};
  if (tensor > 1) return {today, fmt::format("tensor_parallel {}", tensor)};
  if (stages > 1) return {today, fmt::format("pipeline_parallel {}", stages)};
  if (s.context() > 1) return {today, fmt::format("context_parallel {}", s.context())};
  if (s.sharding == Sharding::parameters) return {"torch-fsdp", "sharding parameters alone"};
  if (s.sharding != Sharding::none) return {today, "a sharded optimizer"};
  return {"harness", "a layout that divides nothing but the batch"};
}

}  // namespace harness::config
