#include "analysis/levers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "config/registry.h"

namespace harness::analysis {
namespace {

struct LeverRow {
  std::string_view variable;
  std::vector<Part> on;
};

// What each variable can do something about; of two that act on as much the first is named first. Those that only
// say how much is computed (ranks, repeat_batch) are none.
const std::vector<LeverRow>& table() {
  using enum Part;
  static const std::vector<LeverRow> rows{
      {"precision", {matrix_products, attention, other_compute, tensor, pipeline}},
      {"overlap_grad_reduce", {data}},
      {"bucket_size", {data}},
      {"overlap_optimizer", {other_compute}},
      {"cuda_graph", {idle}},
      {"programmatic_launch", {idle}},
      {"layout", {matrix_products, tensor, pipeline, data, embedding, bubble}},
      {"micro_batch_size", {matrix_products, bubble, idle}},
      {"global_batch_size", {data, embedding, world, bubble}},
      {"allreduce_algorithm", {tensor, data, embedding}},
      {"threads", {matrix_products, attention, other_compute}},
      {"attention", {attention}},
      {"attention_engine", {attention}},
      {"nccl_algo", {tensor, data, embedding, world}},
      {"nccl_proto", {tensor, data, embedding, world}},
      {"nccl_min_ctas", {tensor, data}},
      {"nccl_max_ctas", {tensor, data}},
      {"nccl_buffsize", {data, pipeline}},
      {"nccl_nvls", {tensor, data}},
      {"nccl_net_gdr_level", {data, pipeline}},
      {"nccl_cross_nic", {data}},
      {"nccl_ib_qps", {data}},
      {"nccl_pxn", {pipeline, data}},
  };
  return rows;
}

// Listed, so that a new variable is not forgotten: what says how much is computed, what a site has (adapters,
// interfaces), and what only single operations know.
constexpr std::array<std::string_view, 21> none{"ranks",
                                                "repeat_batch",
                                                "nccl_nthreads",
                                                "nccl_collnet",
                                                "nccl_p2p_level",
                                                "nccl_ib_disable",
                                                "nccl_ib_hca",
                                                "nccl_ib_gid_index",
                                                "nccl_socket_ifname",
                                                "nccl_socket_nthreads",
                                                "nccl_nsocks_perthread",
                                                "env",
                                                "workload",
                                                "collective",
                                                "collective_over",
                                                "message_size",
                                                "in_place",
                                                "gemm",
                                                "attention_shape",
                                                "attention_pass",
                                                "repetitions"};

}  // namespace

std::vector<std::string> levers() {
  std::vector<std::string> names;
  for (const LeverRow& row : table()) names.emplace_back(row.variable);
  return names;
}

std::vector<std::string> variables_without_lever() {
  return {none.begin(), none.end()};
}

std::vector<std::string> variables_for(Part part, const std::string& backend) {
  std::vector<std::string> names;
  for (const LeverRow& row : table()) {
    if (std::ranges::find(row.on, part) == row.on.end()) continue;
    const config::Variable* variable = config::find_variable(row.variable);
    const bool honoured = variable != nullptr && std::ranges::any_of(variable->backends, [&](config::BackendKind kind) {
                            return backend == config::name_of(kind);
                          });
    if (honoured) names.emplace_back(row.variable);
  }
  return names;
}

}  // namespace harness::analysis
