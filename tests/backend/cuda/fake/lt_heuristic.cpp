// Which algorithms cuBLASLt offers, and its versions and names.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core.h"
#include "lt_problem.h"

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
  if (requested <= 0 || results == nullptr || count == nullptr) {
    return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "no room for results");
  }
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

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  constexpr const char* call = "cublasLtMatmulAlgoCheck";
  if (!is_live(handle)) return lt_failed(CUBLAS_STATUS_NOT_INITIALIZED, call, "not a live handle");
  LtProblem problem;
  std::string why;
  const cublasStatus_t status = resolve(operation, a, b, c, d, problem, why);
  if (status != CUBLAS_STATUS_SUCCESS) return lt_failed(status, call, why.c_str());
  if (algo == nullptr || result == nullptr) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "a null argument");
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.magic != LtAlgorithm::live) return CUBLAS_STATUS_INVALID_VALUE;  // an answer, not a mistake
  if (algorithm.fingerprint != problem.fingerprint) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (algorithm.tile == std::end(LtAlgorithm::tiles)[-1] || algorithm.cluster > CUBLASLT_CLUSTER_SHAPE_2x1x1) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *result = {};
  result->algo = *algo;
  result->workspaceSize = algorithm.workspace_bytes;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

// The attribute within an algorithm, as bytes; empty: these stand-ins have none.
std::span<std::byte> attribute_of(LtAlgorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  const auto bytes = [](auto& value) { return std::as_writable_bytes(std::span(&value, 1)); };
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return bytes(algorithm.tile);
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
      return bytes(algorithm.cluster);
    default:
      return {};
  }
}

// Those that the library has in four bytes and these stand-ins in one; nullptr: it is none of them.
std::uint8_t* small_attribute_of(LtAlgorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
      return &algorithm.swizzling;
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
      return &algorithm.option;
    default:
      return nullptr;
  }
}

bool is_one(const LtAlgorithm& algorithm) {
  return algorithm.magic == LtAlgorithm::live;
}

}  // namespace

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    size_t bytes, size_t* written) {
  constexpr const char* call = "cublasLtMatmulAlgoConfigGetAttribute";
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (!is_one(algorithm)) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the algorithm is none");
  if (const std::uint8_t* number = small_attribute_of(algorithm, attribute);
      number != nullptr && bytes == sizeof(std::uint32_t)) {
    const std::uint32_t wide = *number;
    std::memcpy(value, &wide, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const auto own = attribute_of(algorithm, attribute);
  if (own.size() != bytes) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "not the size of the attribute");
  std::memcpy(value, own.data(), bytes);
  if (written != nullptr) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  constexpr const char* call = "cublasLtMatmulAlgoConfigSetAttribute";
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (!is_one(algorithm)) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the algorithm is none");
  if (std::uint8_t* number = small_attribute_of(algorithm, attribute);
      number != nullptr && bytes == sizeof(std::uint32_t)) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, value, bytes);
    *number = static_cast<std::uint8_t>(wide);
  } else {
    const auto own = attribute_of(algorithm, attribute);
    if (own.size() != bytes) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "not the size of the attribute");
    std::memcpy(own.data(), value, bytes);
  }
  std::memcpy(algo, &algorithm, sizeof algorithm);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void* value, size_t bytes,
                                                 size_t* written) {
  constexpr const char* call = "cublasLtMatmulAlgoCapGetAttribute";
  LtAlgorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (!is_one(algorithm)) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the algorithm is none");
  std::vector<std::uint32_t> values;
  if (attribute == CUBLASLT_ALGO_CAP_TILE_IDS) {
    values.assign(std::begin(LtAlgorithm::tiles), std::end(LtAlgorithm::tiles));
  } else if (attribute == CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) {
    values = {1};
  } else if (attribute == CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT) {
    values = {algorithm.in_place ? 0u : 1u};
  } else if (attribute == CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX) {
    values = {LtAlgorithm::most_option};
  } else {
    return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "these stand-ins know no such attribute");
  }
  const std::size_t needed = values.size() * sizeof values[0];
  if (written != nullptr) *written = needed;
  if (bytes == 0) return CUBLAS_STATUS_SUCCESS;
  if (bytes < needed) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "no room for the attribute");
  std::memcpy(value, values.data(), needed);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}
size_t cublasLtGetCudartVersion() {
  return CUDART_VERSION;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "another CUBLAS_STATUS";
  }
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}
