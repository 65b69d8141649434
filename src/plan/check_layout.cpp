#include "base/error.h"
#include "config/fields.h"
#include "plan/plan.h"
#include "workloads/check_point.h"

namespace harness {
namespace {

// The multiples of `step` next to `wrong`: what a batch size could be instead.
std::string nearest_multiples(std::int64_t step, std::int64_t wrong) {
  const std::int64_t below = wrong / step * step;
  return below == 0 ? fmt::format("{}", step) : fmt::format("{} or {}", below, below + step);
}

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
  const int ranks = s.ranks == 0 ? available : s.ranks;
  const int tensor = s.layout.tensor_parallel;
  const int pipeline = s.layout.pipeline_parallel;
  if (ranks > available) return fmt::format("ranks {} is more than the {} of the job", ranks, available);
  if (s.workload != WorkloadKind::gpt) {
    const std::string why = cut_ranks(s, available, layout);
    return why.empty() ? check_point(s, layout) : why;
  }
  // hidden is a multiple of heads and the MLP one of hidden: what divides the heads divides both.
  if (model.heads % tensor != 0) {
    return fmt::format("tensor_parallel {} does not divide heads {}; nearest that does: {}", tensor, model.heads,
                       nearest_divisors(model.heads, tensor));
  }
  if (model.vocab % tensor != 0) {
    return fmt::format("tensor_parallel {} does not divide vocab {}; pad the vocabulary to {}", tensor, model.vocab,
                       (model.vocab / tensor + 1) * tensor);
  }
  if (model.layers % pipeline != 0) {
    return fmt::format("pipeline_parallel {} does not divide layers {}; nearest that does: {}", pipeline, model.layers,
                       nearest_divisors(model.layers, pipeline));
  }
  Layout cut;
  if (std::string why = cut_ranks(s, available, cut); !why.empty()) return why;
  const int data = cut[Axis::data];
  if (s.global_batch_size % data != 0) {
    return fmt::format("data_parallel {} ({} ranks / {}) does not divide global_batch_size {}; nearest batches: {}",
                       data, ranks, tensor * pipeline, s.global_batch_size,
                       nearest_multiples(data, s.global_batch_size));
  }
  const std::int64_t share = s.global_batch_size / data;
  if (share % s.micro_batch_size != 0) {
    return fmt::format(
        "micro_batch_size {} does not divide the {} sequences of a replica (global_batch_size {} / data_parallel {}); "
        "nearest that does: {}",
        s.micro_batch_size, share, s.global_batch_size, data, nearest_divisors(share, s.micro_batch_size));
  }
  layout = cut;
  return "";
}

}  // namespace harness
