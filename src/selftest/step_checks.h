#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "selftest/check_line.h"

namespace harness::selftest {

/// About how long products are tuned where tuning is checked, not used.
inline constexpr double checked_tuning_s = 3;

struct StepCheckOptions {
  int threads = 1;
  std::uint64_t seed = 1;
  /// Called with each line when it is known.
  std::function<void(const CheckLine&)> finished = [](const CheckLine&) {};
};

/// Losses and gradients of the small models in `directory` (selftest/reference.h): GPT in fp32 and bf16, and the
/// options of Llama-style models (grouped queries, rotary positions, SwiGLU, RMS norm, …) in fp32. Each in one
/// micro-batch and in several.
std::vector<CheckLine> check_reference(const backend::Backend& subject, const std::string& directory,
                                       const StepCheckOptions& options);

/// Trains in two ways that must agree: as a CUDA graph or not, attention fused or not, and bf16 beside fp32; and that
/// the loss falls on a repeated batch. What the backend does not know is not run.
std::vector<CheckLine> check_equality(const backend::Backend& subject, const StepCheckOptions& options);

/// |a - b| / |b|, of the norms; infinite where something is not finite. Throws Error for different lengths.
double relative_distance(const std::vector<float>& a, std::span<const float> b);

}  // namespace harness::selftest
