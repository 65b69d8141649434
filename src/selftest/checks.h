#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace harness::selftest {

enum class Outcome : std::uint8_t { passed, failed, not_run };
const char* name_of(Outcome outcome);

/// The result of one check: a line of the table that `harness selftest` prints, and what stands below it.
struct CheckLine {
  std::string check;  // "operations: layer_norm bf16"
  int cases = 0;
  double error = 0, tolerance = 0;  // the worst of all cases, and what is allowed; tolerance 0: nothing is compared
  Outcome outcome = Outcome::passed;
  std::vector<std::string> failures;  // one per failed case, complete sentences
  std::vector<std::string> notes;     // for people: figures, why something did not run
};

/// Takes the error in; beyond the tolerance (or not a number) the line has failed, and `what` says of which.
void judge(CheckLine& line, const std::string& what, double error);

/// 0: all passed; 1: something failed; 3: nothing ran at all.
int exit_code(const std::vector<CheckLine>& lines);

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
