#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/timer.h"
#include "program/program.h"

namespace harness::cuda {

// Backend::time_alone() of the cuda backend, on the calling thread's GPU.

/// The matrix products of the step, in its order. What `tuning` does not name runs as the library proposes first.
/// Throws DeviceFailed if one breaks the device.
std::vector<backend::AloneTiming> time_products(const program::Program& program, bool tf32,
                                                const backend::Tuning& tuning, std::int64_t l2_bytes, double seconds);

struct AttentionSeconds {
  double forward = 0, backward = 0;
};
/// Mean seconds of a call of each direction over random operands, `seconds` in all. `type`: of q, k and v.
AttentionSeconds time_attention(AttentionKernel& kernel, const program::AttentionShape& shape, program::DType type,
                                Timer& timer, double seconds);

/// The shapes of the step's attentions, each once. Pure.
std::vector<program::AttentionShape> attention_shapes(const program::Program& program);

/// The fused attentions of the step, in its order. Nothing where attention does not run fused.
std::vector<backend::AloneTiming> time_attentions(const backend::ExecutableRequest& request, double seconds);

}  // namespace harness::cuda
