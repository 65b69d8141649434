#pragma once

// Training steps of real sizes with randomly drawn settings, the same in every run.

#include <random>
#include <string>
#include <vector>

#include "config/registry.h"
#include "program/layout.h"
#include "workloads/workload.h"

namespace harness::test {

struct DrawnStep {
  config::Model model;
  config::Settings settings;
  program::Layout layout;
  std::string text() const {
    std::string all = fmt::format("{}, {}", program::text_of(layout), config::in_words(model));
    for (const config::Variable& variable : config::registry()) {
      const std::string value = variable.print(settings);
      if (value != config::default_of(variable)) all += fmt::format(", {} {}", variable.name, value);
    }
    return all;
  }
};

class StepDraw {
 public:
  explicit StepDraw(std::uint64_t seed) : random_(seed) {}

  /// Returns a possible step of 3 or more micro-batches that gpt::folded() folds.
  DrawnStep next() {
    for (;;) {
      const DrawnStep step = any();
      const workloads::Workload& gpt = workloads::gpt_workload();
      if (gpt.why_impossible(step.model, step.settings).empty() &&
          gpt.why_impossible_on(step.model, step.settings, step.layout).empty())
        return step;
    }
  }

 private:
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random_() % values.size());
  }
  bool coin() { return one_of({0, 1}) == 1; }

  DrawnStep any() {
    DrawnStep step;
    config::Settings& s = step.settings;
    const int tensor = static_cast<int>(one_of({1, 1, 2, 4})), stages = static_cast<int>(one_of({1, 2, 3, 4}));
    const int data = static_cast<int>(one_of({1, 2, 4}));
    s.pipeline_schedule = static_cast<config::PipelineSchedule>(one_of({0, 1, 2}));
    if (s.pipeline_schedule == config::PipelineSchedule::interleaved)
      s.virtual_pipeline = static_cast<int>(one_of({2, 3}));
    const std::int64_t runs = stages * s.chunks_of_stage();
    step.model = {"drawn", runs * one_of({1, 2}) + one_of({0, 0, 1}), one_of({1024, 2048, 6144}), 16, 51200, 2048};
    if (coin()) {
      step.model.kv_heads = 8;
      step.model.ffn = 3 * step.model.hidden;
      step.model.activation = config::Activation::swiglu;
      step.model.norm = config::NormKind::rms_norm;
      step.model.positions = config::Positions::rotary;
      step.model.tied_embeddings = step.model.biases = false;
    }
    s.embedding_as_layer = one_of({0, 0, 1}) == 1;
    s.precision = config::Precision::bf16;
    s.micro_batch_size = one_of({1, 2});
    s.global_batch_size =
        s.micro_batch_size * data * stages * one_of({1, 2, 3, 5}) + s.micro_batch_size * data * one_of({0, 3});
    s.recompute = static_cast<config::Recompute>(one_of({0, 1, 2}));
    if (s.recompute == config::Recompute::full) s.recompute_layers = static_cast<int>(one_of({0, 1}));
    s.attention = coin() ? config::AttentionKind::fused : config::AttentionKind::unfused;
    s.sequence_parallel = tensor > 1 && coin();
    s.sharding = coin() ? config::Sharding::none : config::Sharding::optimizer;
    s.overlap_grad_reduce = coin();
    s.overlap_optimizer = coin();
    s.overlap_param_gather = coin();
    s.layout = {{program::Axis::tensor, tensor}, {program::Axis::pipeline, stages}};
    step.layout = {{program::Axis::tensor, tensor}, {program::Axis::data, data}, {program::Axis::pipeline, stages}};
    if (s.global_batch_size < 3 * data * s.micro_batch_size) return any();
    return step;
  }

  std::mt19937_64 random_;
};

}  // namespace harness::test
