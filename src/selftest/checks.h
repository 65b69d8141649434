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

/// The result of one check: a line of the table of `harness selftest`, and the details below it.
struct CheckLine {
  std::string check;  // "operations: layer_norm bf16"
  int cases = 0;
  double error = 0, tolerance = 0;  // the worst error of all cases, and the allowed one; 0: nothing is compared
  Outcome outcome = Outcome::passed;
  std::vector<std::string> failures = {};  // one complete sentence per failed case
  std::vector<std::string> notes = {};     // figures, or why something did not run
};

/// Adds an error. If it exceeds the tolerance or is NaN, the line fails with a message about `what`.
void judge(CheckLine& line, const std::string& what, double error);

/// 0: all passed; 1: something failed; 3: nothing ran at all.
int exit_code(const std::vector<CheckLine>& lines);

/// Checks losses and gradients of the small models in `directory`: GPT in fp32, bf16 and, if the backend supports it,
/// tf32, and the options of Llama-style models (grouped queries, rotary positions, SwiGLU, RMS norm, …) in fp32. Each
/// runs with one micro-batch and with several, with fused and unfused attention, and in every other mode of the backend
/// that must not change results: without a CUDA graph, with the optimizer beside the backward pass, with tuned
/// products. Calls `finished` with each line.
void check_reference(const backend::Backend& subject, const std::string& directory, int threads,
                     const std::function<void(const CheckLine&)>& finished);

/// The whole buffers of a case after its operation, including guards.
using CaseBytes = std::vector<std::vector<std::byte>>;

/// Runs a list of operations on a case's buffers with this number of threads, and returns the buffers. `warnings`, if
/// given, receives those of the backend.
CaseBytes results_of(const backend::Backend& on, const OperationCase& test_case,
                     const std::vector<program::Operation>& list, CaseBytes bytes, int threads = 1,
                     std::set<std::string>* warnings = nullptr);

/// The fault of a result, or its error if there is no other fault.
struct ResultError {
  double error = 0;     // the larger of max |difference| / max |value| and norm of difference / norm
  std::string failure;  // "" if only `error` matters: "buffer out is not written: …"
};
/// Compares the results of subject and oracle for the input `before`. Only the written views of the operation may
/// change, and they must contain neither poison nor non-finite values; elements that the oracle leaves as poison must
/// stay poison. The answer does not depend on the number of threads.
ResultError compare(const OperationCase& test_case, const CaseBytes& before, const CaseBytes& subject,
                    const CaseBytes& oracle, int threads = 1);

struct OperationCheckOptions {
  std::vector<std::string> only;  // substrings of "operation: name"; empty: all cases
  bool large = true;              // also real sizes
  std::uint64_t seed = 1;
  int threads = 1;  // for the oracle, the inputs and the comparison
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
  std::function<void(const CheckLine& line)> finished = [](const CheckLine&) {};  // after its last case
};
/// Runs every case on both backends, each in a fresh Executable: one line per operation and precision.
std::vector<CheckLine> check_operations(const std::vector<OperationCase>& cases, const backend::Backend& subject,
                                        const backend::Backend& oracle, const OperationCheckOptions& options);

/// The expected results of a small model's step, from an independent implementation: tests/reference (its README
/// describes how they were made). Losses of steps 0, 1, …, and every gradient of step 0.
struct Reference {
  config::Model model;
  config::Settings settings;  // its precision and global batch
  std::uint64_t seed = 1;
  std::vector<double> losses;
  std::vector<float> gradients;

  /// Looks up a tensor by its name in gpt::parameters. Throws Error if there is none.
  std::span<const float> tensor(const std::string& name) const;

  struct Place {
    std::size_t offset = 0, count = 0;
  };
  std::map<std::string, Place> places;
};

/// `precision`: fp32 or bf16. Throws Error that names the missing or invalid file.
Reference load_reference(const std::string& directory, config::Precision precision);

/// The models with current options, each alone and all together, in fp32; the model's name tells which. Throws Error
/// like load_reference().
std::vector<Reference> load_model_references(const std::string& directory);

/// The folder of the reference that came with a program: share/harness/reference or tests/reference, in the program's
/// folder or one above it. This works in a build folder, in a bundle and after installation. "": not found.
std::string find_reference(const std::string& program_path);

}  // namespace harness::selftest
