#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "selftest/checks.h"
#include "selftest/operation_cases.h"

namespace harness::selftest {

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

}  // namespace harness::selftest
