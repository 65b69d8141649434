// Which algorithms cuBLASLt offers, and its versions and names.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core.h"
#include "lt.h"

namespace harness::fake {
namespace {

std::uint16_t alignment_of(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return number == 0 ? 1 : static_cast<std::uint16_t>(std::min<std::uintptr_t>(number & (~number + 1), 16));
}

cublasLtMatmulAlgo_t opaque(const LtAlgorithm& algorithm) {
  static_assert(sizeof(LtAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));
  cublasLtMatmulAlgo_t made{};
  std::memcpy(&made, &algorithm, sizeof algorithm);
  return made;
}

}  // namespace
}  // namespace harness::fake

using namespace harness::fake;

// Four, as far as room is: first one that keeps its sums in a workspace, if the preference allows one (so that a caller
// who takes the first finds out whether two of its streams share a workspace); then one that cannot run after all; one
// without a workspace; one that sums in another order.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  constexpr const char* call = "cublasLtMatmulAlgoGetHeuristic";
  if (!is_live(handle)) return lt_failed(CUBLAS_STATUS_NOT_INITIALIZED, call, "not a live handle");
  *count = 0;
  const LtPreference* wanted = content(preference);
  if (wanted == nullptr) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the preference is not a live one");
  LtProblem problem;
  std::string why;
  const cublasStatus_t status = resolve(operation, a, b, c, d, problem, why);
  if (status != CUBLAS_STATUS_SUCCESS) return lt_failed(status, call, why.c_str());
  const unsigned epilogue = problem.descriptor.epilogue;
  if (settings().lt_epilogue_status != 0 && epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      epilogue != CUBLASLT_EPILOGUE_BIAS) {
    return static_cast<cublasStatus_t>(settings().lt_epilogue_status);  // an answer, not a mistake
  }
  LtAlgorithm algorithm;
  algorithm.fingerprint = problem.fingerprint;
  const LtMatrix* matrices[] = {&problem.a, &problem.b, &problem.c, &problem.d};
  for (int i = 0; i < 4; ++i) {
    if (wanted->min_alignment[i] < size_of(matrices[i]->type)) {
      return lt_failed(CUBLAS_STATUS_NOT_SUPPORTED, call, "no algorithm takes an alignment below that of an element");
    }
    algorithm.alignment[i] = static_cast<std::uint16_t>(std::min(wanted->min_alignment[i], 256u));
  }
  algorithm.bias_alignment = alignment_of(problem.descriptor.bias);
  algorithm.aux_alignment = alignment_of(problem.descriptor.aux);
  for (std::uint32_t number = 0; number < 4 && *count < requested; ++number) {
    cublasLtMatmulHeuristicResult_t& result = results[*count];
    result = {};
    std::memset(&result.algo, 0xEE, sizeof result.algo);
    if (number == 1) {
      result.state = CUBLAS_STATUS_NOT_SUPPORTED;
    } else {
      algorithm.number = number;
      algorithm.in_place = settings().lt_first_is_in_place && number == 0;
      algorithm.workspace_bytes = 0;
      if (number == 0) {
        algorithm.workspace_bytes = static_cast<std::uint64_t>(problem.m * problem.n) * sizeof(double);
        if (algorithm.workspace_bytes > wanted->max_workspace_bytes) continue;
      }
      result.algo = opaque(algorithm);
      result.workspaceSize = algorithm.workspace_bytes;
      result.state = CUBLAS_STATUS_SUCCESS;
      result.wavesCount = 1;
    }
    ++*count;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoCapAttributes_t,
                                                 void* value, size_t, size_t* written) {
  constexpr const char* call = "cublasLtMatmulAlgoCapGetAttribute";
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.magic != LtAlgorithm::live)
    return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the algorithm is none");
  const std::int32_t supported = algorithm.in_place ? 0 : 1;
  if (written != nullptr) *written = sizeof supported;
  std::memcpy(value, &supported, sizeof supported);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
#define HARNESS_FAKE_STATUS(status) \
  { status, #status }
  constexpr std::pair<cublasStatus_t, const char*> names[] = {
      HARNESS_FAKE_STATUS(CUBLAS_STATUS_SUCCESS),       HARNESS_FAKE_STATUS(CUBLAS_STATUS_NOT_INITIALIZED),
      HARNESS_FAKE_STATUS(CUBLAS_STATUS_INVALID_VALUE), HARNESS_FAKE_STATUS(CUBLAS_STATUS_ARCH_MISMATCH),
      HARNESS_FAKE_STATUS(CUBLAS_STATUS_NOT_SUPPORTED), HARNESS_FAKE_STATUS(CUBLAS_STATUS_EXECUTION_FAILED)};
#undef HARNESS_FAKE_STATUS
  const auto* found = std::ranges::find(names, status, &std::pair<cublasStatus_t, const char*>::first);
  return found == std::end(names) ? "another CUBLAS_STATUS" : found->second;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}
