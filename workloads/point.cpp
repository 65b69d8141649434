#include "config/registry.h"
#include "workloads/check_point.h"
#include "workloads/operations.h"

namespace harness {
namespace {

// nccl-tests' doc/PERFORMANCE.md: what a link carries for each byte of the size, if the algorithm wastes nothing.
double bus_factor(CollectiveKind kind, double members) {
  if (kind == CollectiveKind::all_reduce) return 2 * (members - 1) / members;
  return kind == CollectiveKind::send_recv ? 1 : (members - 1) / members;
}

double gemm_bytes(const Settings& s) {
  const GemmShape& g = s.gemm;
  return static_cast<double>((g.m * g.k + g.k * g.n + g.m * g.n) * element_bytes(s));
}

// Forward: queries, keys, values and the output; backward: these, the output's gradient and three gradients. The
// statistics of the softmax are one f32 per row and head.
double attention_bytes(const Settings& s) {
  const AttentionProblem& a = s.attention_shape;
  const std::int64_t rows = a.batch * a.sequence, tensors = s.attention_backward ? 8 : 4;
  return static_cast<double>(tensors * rows * a.heads * a.head_dim * element_bytes(s) + rows * a.heads * 4);
}

}  // namespace

Point point_of(const Settings& s, const Layout& layout) {
  switch (s.workload) {
    case WorkloadKind::collective:
      return {find_variable("collective")->print(s), s.repetitions, static_cast<double>(s.message_bytes),
              bus_factor(s.collective, members_of(s.collective_over, layout))};
    case WorkloadKind::gemm:
      return {"gemm", s.repetitions, gemm_bytes(s), 0};
    case WorkloadKind::attention:
      return {s.attention_backward ? "attention_backward" : "attention", s.repetitions, attention_bytes(s), 0};
    case WorkloadKind::gpt:
      break;
  }
  return {};
}

}  // namespace harness
