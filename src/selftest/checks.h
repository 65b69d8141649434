#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "config/settings.h"
#include "selftest/operation_cases.h"

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

struct StepCheckOptions {
  int threads = 1;
  /// Called with each line when it is known.
  std::function<void(const CheckLine&)> finished = [](const CheckLine&) {};
};

/// Losses and gradients of the small models in `directory`: GPT in fp32, bf16 and, where the backend has it, tf32, and
/// the options of Llama-style models (grouped queries, rotary positions, SwiGLU, RMS norm, …) in fp32. Each is run in
/// one micro-batch and in several, with attention fused and not, and in every other way of the backend that must change
/// nothing: without a CUDA graph, with the optimizer beside the backward pass, with tuned products.
void check_reference(const backend::Backend& subject, const std::string& directory, const StepCheckOptions& options);

/// The buffers of a case after its operation, whole, guards included.
using CaseBytes = std::vector<std::vector<std::byte>>;

/// Runs the operations of a list on a case's buffers, on a backend with so many threads, and returns the buffers.
/// `warnings`, if given, takes those of the backend.
CaseBytes results_of(const backend::Backend& on, const OperationCase& test_case,
                     const std::vector<program::Operation>& list, CaseBytes bytes, int threads = 1,
                     std::set<std::string>* warnings = nullptr);

/// The fault of a result, and how far it is off where it has no other fault.
struct ResultError {
  double error = 0;     // the larger of the two: largest difference / largest value, norm of difference / norm
  std::string failure;  // "" if only the error is to be judged: "buffer out is not written: …"
};
/// Compares what the subject made of `before` with what the oracle made of it. Nothing but the operation's written
/// views may have changed. Written views must contain no poison or non-finite value unless the oracle's do. The answer
/// does not depend on the number of threads.
ResultError compare(const OperationCase& test_case, const CaseBytes& before, const CaseBytes& subject,
                    const CaseBytes& oracle, int threads = 1);

struct OperationCheckOptions {
  std::vector<std::string> only;  // cases whose "operation: name" contains one of these; none: all
  bool large = true;              // real sizes too
  std::uint64_t seed = 1;
  int threads = 1;  // of the oracle, and to fill inputs and compare results
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
  std::function<void(const CheckLine& line)> finished = [](const CheckLine&) {};  // after its last case
};
/// Runs every case on both backends, a fresh Executable each: one line per operation and precision.
std::vector<CheckLine> check_operations(const std::vector<OperationCase>& cases, const backend::Backend& subject,
                                        const backend::Backend& oracle, const OperationCheckOptions& options);

/// The results that the step of a small model must have, from an independent implementation: tests/reference (its
/// README says how it was made). Losses of steps 0, 1, …, and every gradient of step 0.
struct Reference {
  config::Model model;
  config::Settings settings;  // its precision and global batch
  std::uint64_t seed = 1;
  std::vector<double> losses;
  std::vector<float> gradients;

  /// By the name gpt::parameters gives it. Throws Error if there is none.
  std::span<const float> tensor(const std::string& name) const;

  struct Place {
    std::size_t offset = 0, count = 0;
  };
  std::map<std::string, Place> places;
};

/// `precision`: fp32 or bf16. Throws Error naming the file that is missing or wrong.
Reference load_reference(const std::string& directory, config::Precision precision);

/// The models with today's options, each alone and together, in fp32; the model's name says which. Throws as above.
std::vector<Reference> load_model_references(const std::string& directory);

/// The folder of the reference that came with a program, share/harness/reference or tests/reference in its own folder
/// or one above it: a program finds what came with it in its source tree's build folder, in a bundle and where it is
/// installed. "" if there is none.
std::string find_reference(const std::string& program_path);

}  // namespace harness::selftest
