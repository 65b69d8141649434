// cublasLtMatmul: the checks at the call, and the work that it enqueues on the stream.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "core.h"
#include "lt.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {
namespace {

constexpr const char* call = "cublasLtMatmul";

struct Range {
  std::string name;
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::size_t alignment = 16;
  bool written = false;
  bool dense = true;  // every byte belongs to it
};

Range range_of(const char* name, const void* data, const LtMatrix& matrix, int batch_count, std::size_t alignment,
               bool written) {
  const std::size_t bytes = matrix.bytes(batch_count);
  const auto elements = static_cast<std::size_t>(matrix.rows * matrix.cols * batch_count);
  return {name, data, bytes, alignment, written, bytes == elements * size_of(matrix.type)};
}

std::vector<Range> ranges_of(const MatmulJob& job, const LtAlgorithm& algorithm) {
  const LtProblem& problem = job.problem;
  const LtDescriptor& descriptor = problem.descriptor;
  std::vector<Range> ranges{
      range_of("A", job.a, problem.a, problem.batch_count, algorithm.alignment[0], false),
      range_of("B", job.b, problem.b, problem.batch_count, algorithm.alignment[1], false),
      range_of("D", job.d, problem.d, problem.batch_count, algorithm.alignment[3], true),
  };
  if (job.beta != 0) {
    ranges.push_back(range_of("C", job.c, problem.c, problem.batch_count, algorithm.alignment[2], false));
  }
  if (is_8_bit(problem.a.type)) {
    const std::size_t alignment = problem.has_block_scales() ? 16 : alignof(float);
    ranges.push_back({"A's scales", descriptor.a_scale, problem.scale_bytes(problem.m), alignment});
    ranges.push_back({"B's scales", descriptor.b_scale, problem.scale_bytes(problem.n), alignment});
  }
  if (problem.uses_bias()) {
    const auto length = static_cast<std::size_t>(problem.adds_bias() ? problem.m : problem.n);
    ranges.push_back(
        {"the bias", descriptor.bias, length * size_of(problem.d.type), algorithm.bias_alignment, problem.sums_b()});
  }
  if (problem.uses_aux()) {
    ranges.push_back(range_of("the auxiliary matrix", descriptor.aux, problem.aux, problem.batch_count,
                              std::max<std::size_t>(16, algorithm.aux_alignment), problem.applies_gelu()));
  }
  if (job.workspace != nullptr) {
    ranges.push_back({"the workspace", job.workspace, algorithm.workspace_bytes, 16, true});
  }
  return ranges;
}

bool overlap(const Range& range, const Range& other) {
  const auto* first = static_cast<const char*>(range.data);
  const auto* second = static_cast<const char*>(other.data);
  return first < second + other.bytes && second < first + range.bytes;
}

// Returns what is wrong with the memory; empty if nothing is.
std::string check(const std::vector<Range>& ranges, const MatmulJob& job, int device) {
  for (const Range& range : ranges) {
    if (!on_device(range.data, range.bytes, device)) {
      return fmt::format("{}: {} (the stream is of device {})", range.name, where(range.data, range.bytes), device);
    }
    if (reinterpret_cast<std::uintptr_t>(range.data) % range.alignment != 0) {
      return fmt::format("{} is not aligned to {} bytes, as the algorithm was told it would be", range.name,
                         range.alignment);
    }
  }
  for (const Range& range : ranges) {
    for (const Range& other : ranges) {
      if (&range == &other || !range.written || !overlap(range, other)) continue;
      const bool in_place = range.name == "D" && other.name == "C" && job.c == job.d &&
                            job.problem.c.row_step == job.problem.d.row_step &&
                            job.problem.c.col_step == job.problem.d.col_step &&
                            job.problem.c.batch_step == job.problem.d.batch_step;
      // Matrices may be interleaved in one allocation: refuse only a certain overlap.
      const bool interleaved = !range.dense && !other.dense && range.data != other.data;
      if (!in_place && !interleaved) return fmt::format("{} overlaps {}", range.name, other.name);
    }
  }
  return {};
}

}  // namespace

}  // namespace harness::fake

using namespace harness::fake;

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream_handle) {
  if (!is_live(handle)) return lt_failed(CUBLAS_STATUS_NOT_INITIALIZED, call, "not a live handle");
  if (device_error() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  MatmulJob job;
  std::string why;
  const cublasStatus_t status = resolve(operation, a_layout, b_layout, c_layout, d_layout, job.problem, why);
  if (status != CUBLAS_STATUS_SUCCESS) return lt_failed(status, call, why.c_str());
  if (alpha == nullptr || beta == nullptr) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "no alpha, or no beta");

  LtAlgorithm algorithm;
  if (algo != nullptr) std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algo == nullptr) algorithm.fingerprint = job.problem.fingerprint;
  if (algorithm.magic != LtAlgorithm::live) {
    return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "the algorithm is none; was its state looked at?");
  }
  if (algorithm.fingerprint != job.problem.fingerprint) {
    return lt_failed(CUBLAS_STATUS_NOT_SUPPORTED, call, "the algorithm was offered for another problem");
  }
  if (algorithm.in_place && c != d && *static_cast<const float*>(beta) != 0) {
    return lt_failed(CUBLAS_STATUS_NOT_SUPPORTED, call, "the algorithm takes no C but its D");
  }
  if (workspace_bytes < algorithm.workspace_bytes) {
    why = fmt::format("a workspace of {} bytes, the algorithm needs {}", workspace_bytes, algorithm.workspace_bytes);
    return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, why.c_str());
  }

  job.a = a;
  job.b = b;
  job.c = c;
  job.d = d;
  job.algorithm = static_cast<int>(algorithm.number);
  if (algorithm.workspace_bytes > 0) job.workspace = static_cast<double*>(workspace);
  job.alpha = *static_cast<const float*>(alpha);
  job.beta = *static_cast<const float*>(beta);
  const auto stream = find_stream(stream_handle, call);
  if (!stream) return CUBLAS_STATUS_INVALID_VALUE;
  if (stream->device != current_device()) {
    return lt_failed(CUBLAS_STATUS_ARCH_MISMATCH, call, "the stream is of another device than the current one");
  }
  const auto ranges = ranges_of(job, algorithm);
  why = algorithm.workspace_bytes > 0 && workspace == nullptr ? "no workspace" : check(ranges, job, stream->device);
  if (!why.empty()) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, why.c_str());

  const auto work = [job, ranges, device = stream->device] {
    if (job.algorithm == settings().lt_fatal_algorithm) {
      break_device(device, cudaErrorIllegalAddress, "a matrix multiplication read beyond its operands");
      return;
    }
    for (const Range& range : ranges) {
      if (on_device(range.data, range.bytes, device)) continue;
      break_device(device, cudaErrorIllegalAddress,
                   fmt::format("a matrix multiplication ran late, {}: {}", range.name, where(range.data, range.bytes)));
      return;
    }
    multiply(job);
  };
  return give(stream, "matmul", work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
