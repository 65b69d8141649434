#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/timer.h"
#include "backend/cuda/trial.h"
#include "program/program.h"

namespace harness::cuda {

/// Which kernels an attention runs with, and what they took when they were chosen. `rejected`: kernels that computed
/// something else than the first.
struct AttentionChoice {
  AttentionEngines engines;
  double forward_s = 0, backward_s = 0;
  int rejected = 0;
  bool operator==(const AttentionChoice&) const = default;
};
/// Names a fused attention in a table of tuned choices.
std::string key_of(const program::AttentionShape& shape);
/// "1 0 5.2e-4 1.6e-3", with " 2" behind it after two rejections. parse_attention throws Error for anything else.
std::string print_choice(const AttentionChoice& choice);
AttentionChoice parse_attention(std::string_view text);

/// Makes the attention of one shape with the given kernels; each call another one, on one stream.
using MakeAttention = std::function<std::unique_ptr<AttentionKernel>(const AttentionEngines& engines)>;

/// The fastest kernel of each direction among the first `offered` that compute what the first that runs does. They take
/// turns call by call, and the best run alone in the end, as products do (trial.h). `type`: of q, k and v. Throws Error
/// if none runs or memory does not suffice, DeviceFailed if one breaks the device.
AttentionChoice fastest_attention(const program::AttentionShape& shape, program::DType type,
                                  const AttentionEngines& offered, const MakeAttention& make, Timer& timer,
                                  const Effort& effort);

/// The shapes of the step's attentions. Pure.
std::vector<program::AttentionShape> attention_shapes(const program::Program& program);

/// Chooses among cuDNN's kernels for the step's attentions that `known` has no choice for. Nothing where the request
/// names a kernel, or where attention does not run fused.
backend::Tuning tune_attention(const backend::ExecutableRequest& request, const backend::Tuning& known,
                               const Effort& effort);

/// Seconds of a call of each direction with nothing beside it, for about `seconds` in all.
AttentionChoice time_attention(const program::AttentionShape& shape, program::DType type,
                               const AttentionEngines& engines, const MakeAttention& make, Timer& timer,
                               double seconds);

/// What Backend::time_alone() promises of the step's attentions.
std::vector<backend::AloneTiming> time_attentions(const backend::ExecutableRequest& request,
                                                  const backend::Tuning& tuning, double seconds);

}  // namespace harness::cuda
