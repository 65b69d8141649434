#include "sim/calibration.h"

#include <algorithm>

#include "base/error.h"

namespace harness::sim {
namespace {

// Megatron-LM of 2022 runs most elementwise work in kernels of their own: bias, dropout and residual add in one, bias
// and GELU in one, softmax and dropout of the scores in two. Counted from its kernels; the bytes are those that these
// kernels read and write, against what the operation here must move.
constexpr std::array<KindRow, 16> megatron_kinds{{
    {.kind = "matmul", .host_operations = 2},
    {.kind = "matmul", .backward = true, .host_operations = 1},
    {.kind = "layer_norm", .host_operations = 1},
    {.kind = "layer_norm_backward", .backward = true, .bytes = 6.5 / 3, .host_operations = 3},
    {.kind = "bias_add", .bytes = 0.5, .host_operations = 1},
    {.kind = "residual_add", .bytes = 3.5 / 3, .host_operations = 2},
    {.kind = "residual_add", .backward = true, .host_operations = 1},
    {.kind = "column_sum", .bytes = 0, .host_operations = 0},
    {.kind = "gelu", .host_operations = 1},
    {.kind = "gelu_backward", .backward = true, .bytes = 16.0 / 12, .host_operations = 2},
    {.kind = "attention", .host_operations = 5},
    {.kind = "attention_backward", .backward = true, .host_operations = 9},
    {.kind = "embedding", .host_operations = 6},
    {.kind = "embedding_backward", .backward = true, .host_operations = 4},
    // 44 bytes a parameter for the optimizer, and 2 to copy gradients out of the buffer that is reduced.
    {.kind = "adamw", .bytes = 46.0 / 30, .host_operations = 20},
    // 52 bytes a logit in all, where the three parts here need 8.
    {.kind = "cross_entropy_gradient", .bytes = 11, .host_operations = 20},
}};

constexpr Software megatron{.name = "Megatron-LM of 2022",
                            .fused = 0,
                            .host_s = 43.3e-6,
                            .kernel_s = 4e-6,
                            .step_s = 1e-3,
                            .gradient_bytes = 2,
                            .accumulation_bytes = 6,
                            .attention_score_bytes = 2 * 4.5 * 1.3,
                            .attention_score_bytes_back = 2 * 5.5 * 1.3,
                            .scatters_messages = true,
                            .kinds = megatron_kinds};

constexpr Software own{.name = "harness",
                       .fused = program::all_fused,
                       .kernel_s = 2e-6,
                       .step_s = 50e-6,
                       .attention_score_bytes = 4,
                       .attention_score_bytes_back = 6};

constexpr std::array<Calibration, 2> table{
    {{.name = "harness",
      .source = "published tables; nothing of this program was measured on a GPU yet",
      .software = own,
      .product_share = 0.80,
      .network_share = 0.90},
     {.name = "megatron-2022",
      .source = "three scalars fitted to 63 published steps on A100 and H100",
      .software = megatron,
      .product_share = 0.832,
      .network_share = 0.795}}};

}  // namespace

const KindRow& Software::row_of(const program::Operation& operation) const {
  static constexpr KindRow plain{};
  const std::string_view kind = program::name_of(operation.action);
  const bool backward = operation.label.phase == program::Phase::backward && !operation.label.recomputed;
  const KindRow* found = &plain;
  for (const KindRow& row : kinds) {
    if (row.kind == kind && (row.backward == backward || !row.backward)) found = &row;
  }
  return *found;
}

const Calibration& calibration_of(std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Calibration::name);
  if (found == table.end()) fail("found '{}'; allowed: harness, megatron-2022", name);
  return *found;
}

}  // namespace harness::sim
