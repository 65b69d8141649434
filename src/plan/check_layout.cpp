#include "base/error.h"
#include "plan/plan.h"
#include "workloads/workload.h"

namespace harness {
namespace {

// The layout itself, whatever runs on it.
std::string cut_ranks(const Settings& s, int available, Layout& layout) {
  const int ranks = s.ranks == 0 ? available : s.ranks;
  const int tensor = s.layout.tensor_parallel;
  const int pipeline = s.layout.pipeline_parallel;
  const std::int64_t cut = std::int64_t{tensor} * pipeline;
  if (ranks % cut != 0) {
    return fmt::format("tensor_parallel {} * pipeline_parallel {} = {} does not divide {} ranks", tensor, pipeline, cut,
                       ranks);
  }
  layout = Layout();
  layout[Axis::tensor] = tensor;
  layout[Axis::data] = static_cast<int>(ranks / cut);
  layout[Axis::pipeline] = pipeline;
  return "";
}

}  // namespace

std::string check_layout(const Model& model, const Settings& s, int available, Layout& layout) {
  if (s.ranks > available) return fmt::format("ranks {} is more than the {} of the job", s.ranks, available);
  const Workload& workload = workload_of(s);
  if (std::string why = workload.why_impossible(model, s); !why.empty()) return why;
  Layout cut;
  if (std::string why = cut_ranks(s, available, cut); !why.empty()) return why;
  if (std::string why = workload.why_impossible_on(model, s, cut); !why.empty()) return why;
  layout = cut;
  return "";
}

}  // namespace harness
