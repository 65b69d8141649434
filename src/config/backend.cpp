#include "config/backend.h"

#include <algorithm>
#include <array>

#include "config/choice.h"

namespace harness::config {
namespace {

// Fusing GELU into a GEMM does not pay on cpu: oneDNN writes either gelu(x) or x, and the backward pass needs both. Nor
// does fusing a bias gradient, which no oneDNN matmul yields.
constexpr program::FusedSet fused_on_cpu = program::Fused::matmul_bias | program::Fused::matmul_add |
                                           program::Fused::cross_entropy | program::Fused::norm_residual |
                                           program::Fused::norm_dresidual | program::Fused::norm_bias_gradient;

constexpr std::array<BackendTraits, 3> table{
    {{.kind = BackendKind::cpu,
      .name = "cpu",
      .fused = fused_on_cpu,
      .worker_bytes = 30 << 20,  // measured (docs/method.md): the program, its libraries and their thread stacks
      .caveat = "real arithmetic and real collectives on CPU cores. These numbers say nothing about a GPU."},
     {.kind = BackendKind::cuda,
      .name = "cuda",
      .ranks_are_gpus = true,
      .has_tf32 = true,
      .tunes = true,
      .uses_nccl = true,
      .fused = program::all_fused,
      // Assumed, until a worker has measured it: CUDA's context, the workspaces of cuBLASLt and cuDNN, NCCL's buffers.
      .worker_bytes = 1536 << 20},
     {.kind = BackendKind::sim,
      .name = "sim",
      .stands_for = BackendKind::cuda,
      .ranks_are_gpus = true,
      .has_tf32 = true,
      .fused = program::all_fused,
      .worker_bytes = 1536 << 20,
      .caveat =
          "predicted, not measured: a step in virtual time; its expected error stands below, where it is known."}}};

}  // namespace

const BackendTraits& traits_of(BackendKind kind) {
  return *std::ranges::find(table, kind, &BackendTraits::kind);
}

const BackendTraits& traits_of(std::string_view name) {
  static constexpr BackendTraits unknown{.ranks_are_gpus = true};
  const auto* found = std::ranges::find(table, name, &BackendTraits::name);
  return found == table.end() ? unknown : *found;
}

program::FusedSet fused_for(BackendKind kind, const Settings& settings) {
  return settings.fusion ? traits_of(kind).fused : 0;
}

const char* name_of(BackendKind kind) {
  return traits_of(kind).name.data();
}

std::vector<std::string> backend_names() {
  return texts_of_all(table, &BackendTraits::name);
}

BackendKind parse_backend(std::string_view text) {
  return table.at(word_index(text, backend_names())).kind;
}

BackendKind usual_backend(bool has_gpus) {
  return std::ranges::find(table, has_gpus, &BackendTraits::ranks_are_gpus)->kind;
}

}  // namespace harness::config
