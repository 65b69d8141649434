// The problems that cuBLASLt refuses, the algorithms that it offers, its version, and its status names.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "core.h"
#include "lt.h"

namespace harness::fake {
namespace {

struct Refusal {
  cublasStatus_t status;
  std::string why;
};

[[noreturn]] void refuse(cublasStatus_t status, std::string why) {
  throw Refusal{status, std::move(why)};
}

LtMatrix matrix(cublasLtMatrixLayout_t opaque, const char* name) {
  const LtLayout* layout = content(opaque);
  if (layout == nullptr) refuse(CUBLAS_STATUS_INVALID_VALUE, fmt::format("{}'s layout is not a live one", name));
  const auto least = static_cast<std::int64_t>(layout->rows);
  if (layout->rows == 0 || layout->cols == 0 || layout->ld < least) {
    refuse(CUBLAS_STATUS_INVALID_VALUE,
           fmt::format("{} is {} x {} with leading dimension {}, which must be at least {}", name, layout->rows,
                       layout->cols, layout->ld, least));
  }
  LtMatrix made;
  made.type = static_cast<cudaDataType_t>(layout->type);
  made.rows = static_cast<std::int64_t>(layout->rows);
  made.cols = static_cast<std::int64_t>(layout->cols);
  made.row_step = 1;
  made.col_step = layout->ld;
  made.batch_step = layout->batch_stride;
  return made;
}

LtMatrix operand(const LtMatrix& given, int operation, const char* name) {
  if (operation == CUBLAS_OP_N) return given;
  if (operation == CUBLAS_OP_T) return given.transposed();
  refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("{}: operation {}", name, operation));
}

void check_shape(const LtMatrix& matrix, std::int64_t rows, std::int64_t cols, const char* name) {
  if (matrix.rows == rows && matrix.cols == cols) return;
  refuse(CUBLAS_STATUS_INVALID_VALUE,
         fmt::format("{} is {} x {}, expected {} x {}", name, matrix.rows, matrix.cols, rows, cols));
}

// "16/32-Element 1D Block Scaling for FP8 and FP4 Data Types": for both matrices, from Blackwell on.
void check_scale_modes(const LtProblem& problem) {
  constexpr int of_blocks = 2;  // CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
  const LtDescriptor& descriptor = problem.descriptor;
  if (descriptor.a_scale_mode != descriptor.b_scale_mode)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, "A and B have scales of different modes");
  if (descriptor.a_scale_mode == 0) return;
  if (descriptor.a_scale_mode != of_blocks)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("scale mode {}: not done here", descriptor.a_scale_mode));
  if (settings().compute_major < 10)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, "scales of blocks below compute capability 10");
  if (problem.k % 32 != 0)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("blocks of 32 elements in sums of {}", problem.k));
  for (const void* scale : {descriptor.a_scale, descriptor.b_scale}) {
    if (reinterpret_cast<std::uintptr_t>(scale) % 16 != 0)
      refuse(CUBLAS_STATUS_INVALID_VALUE, "scales of blocks that are not aligned to 16 bytes");
  }
}

// cublasLtMatmul(), "To use FP8 kernels": A transposed and B not, sizes that are multiples of 16, a scale for each.
void check_8_bit(const LtProblem& problem) {
  const LtDescriptor& descriptor = problem.descriptor;
  if (descriptor.transpose_a != CUBLAS_OP_T || descriptor.transpose_b != CUBLAS_OP_N)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, "8-bit matrices in another form than TN");
  for (const std::int64_t size : {problem.m, problem.n, problem.k}) {
    if (size % 16 != 0) refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("8-bit matrices with a size of {}", size));
  }
  if (descriptor.a_scale == nullptr || descriptor.b_scale == nullptr)
    refuse(CUBLAS_STATUS_INVALID_VALUE, "8-bit matrices without scales");
  check_scale_modes(problem);
  if (descriptor.epilogue != CUBLASLT_EPILOGUE_DEFAULT && descriptor.epilogue != CUBLASLT_EPILOGUE_BIAS)
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("epilogue {} after 8-bit matrices", descriptor.epilogue));
}

// The supported rows of the library's table of types: 32-bit accumulation of f32, and of bf16 and 8-bit floats into
// bf16 or f32. TF32 takes f32 matrices only.
void check_types(const LtProblem& problem) {
  const LtDescriptor& descriptor = problem.descriptor;
  if (descriptor.scale_type != CUDA_R_32F) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("scale type {}", descriptor.scale_type));
  }
  const bool plain = descriptor.compute_type == CUBLAS_COMPUTE_32F;
  if (!plain && descriptor.compute_type != CUBLAS_COMPUTE_32F_FAST_TF32) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, fmt::format("compute type {}", descriptor.compute_type));
  }
  const cudaDataType_t a = problem.a.type, b = problem.b.type, c = problem.c.type, d = problem.d.type;
  const bool single = a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F && d == CUDA_R_32F;
  const bool eight = is_8_bit(a) && is_8_bit(b) && (a == CUDA_R_8F_E4M3 || b == CUDA_R_8F_E4M3);
  const bool brain =
      plain && ((a == CUDA_R_16BF && b == CUDA_R_16BF) || eight) && c == d && (d == CUDA_R_16BF || d == CUDA_R_32F);
  if (eight) check_8_bit(problem);
  if (!single && !brain) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED,
           fmt::format("compute type {} with types A {}, B {}, C {}, D {}", descriptor.compute_type,
                       static_cast<int>(a), static_cast<int>(b), static_cast<int>(c), static_cast<int>(d)));
  }
  if (problem.uses_bias() && descriptor.bias_type != -1 && descriptor.bias_type != static_cast<int>(d)) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED,
           fmt::format("bias type {}, D's is {}", descriptor.bias_type, static_cast<int>(d)));
  }
}

void check_epilogue(const LtProblem& problem) {
  const LtDescriptor& descriptor = problem.descriptor;
  if (problem.uses_aux()) {
    if (descriptor.aux_ld < problem.m || descriptor.aux_ld % 8 != 0) {
      refuse(CUBLAS_STATUS_INVALID_VALUE,
             fmt::format("leading dimension {} of the auxiliary matrix: a multiple of 8, at "
                         "least the {} rows",
                         descriptor.aux_ld, problem.m));
    }
  }
  if (problem.batch_count > 1 && descriptor.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an epilogue over batches: not done here");
  }
}

void check_batches(LtProblem& problem, std::initializer_list<cublasLtMatrixLayout_t> layouts) {
  problem.batch_count = content(*layouts.begin())->batch_count;
  if (problem.batch_count < 1) refuse(CUBLAS_STATUS_INVALID_VALUE, "a batch count below 1");
  for (const auto layout : layouts) {
    if (content(layout)->batch_count != problem.batch_count) {
      refuse(CUBLAS_STATUS_INVALID_VALUE,
             fmt::format("batch counts {} and {}", problem.batch_count, content(layout)->batch_count));
    }
  }
}

void mix(std::uint64_t& hash, std::int64_t value) {
  hash ^= static_cast<std::uint64_t>(value) + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
}

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

std::size_t size_of(cudaDataType_t type) {
  if (is_8_bit(type)) return 1;
  return type == CUDA_R_32F ? 4 : 2;
}

std::size_t LtMatrix::bytes(int batch_count) const {
  return static_cast<std::size_t>(index(rows - 1, cols - 1) + 1 + (batch_count - 1) * batch_step) * size_of(type);
}

LtMatrix LtMatrix::transposed() const {
  LtMatrix turned = *this;
  std::swap(turned.rows, turned.cols);
  std::swap(turned.row_step, turned.col_step);
  return turned;
}

cublasStatus_t resolve(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, LtProblem& problem, std::string& why) {
  try {
    const LtDescriptor* descriptor = content(operation);
    if (descriptor == nullptr) refuse(CUBLAS_STATUS_INVALID_VALUE, "the operation's descriptor is not a live one");
    problem.descriptor = *descriptor;
    problem.a = operand(matrix(a, "A"), descriptor->transpose_a, "A");
    problem.b = operand(matrix(b, "B"), descriptor->transpose_b, "B");
    problem.c = matrix(c, "C");
    problem.d = matrix(d, "D");
    problem.m = problem.d.rows;
    problem.n = problem.d.cols;
    problem.k = problem.a.cols;
    check_types(problem);
    check_shape(problem.a, problem.m, problem.k, "op(A)");
    check_shape(problem.b, problem.k, problem.n, "op(B)");
    check_shape(problem.c, problem.m, problem.n, "C");
    check_batches(problem, {a, b, c, d});
    check_epilogue(problem);
    problem.aux = {problem.d.type, problem.m, problem.n, 1, descriptor->aux_ld, 0};
    std::uint64_t hash = 0;
    for (const LtMatrix* given : {&problem.a, &problem.b, &problem.c, &problem.d}) {
      for (const std::int64_t value :
           {std::int64_t{given->type}, given->rows, given->cols, given->row_step, given->col_step, given->batch_step}) {
        mix(hash, value);
      }
    }
    for (const std::int64_t value :
         {std::int64_t{descriptor->compute_type}, std::int64_t{descriptor->epilogue}, std::int64_t{problem.batch_count},
          problem.uses_aux() ? descriptor->aux_ld : 0, std::int64_t{descriptor->a_scale_mode}}) {
      mix(hash, value);
    }
    problem.fingerprint = hash;
    return CUBLAS_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    why = refusal.why;
    return refusal.status;
  }
}

}  // namespace harness::fake

using namespace harness::fake;

// Returns up to four algorithms, as `requested` allows: 0 keeps its sums in a workspace and is left out if the
// preference allows none as large (a caller that takes the first thus finds out whether two of its streams share a
// workspace); 1 has a state other than success; 2 needs no workspace; 3 sums in another order.
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
