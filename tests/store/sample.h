#pragma once

#include <limits>
#include <string>
#include <vector>

#include "store/result_file.h"

namespace harness::store {

constexpr float nothing = std::numeric_limits<float>::quiet_NaN();

/// Returns a sweep before its first block: 3 cases, `rounds` rounds, every text and number different.
inline Result sample_plan(int ranks = 4, int rounds = 4) {
  Result plan;
  plan.tool_version = "0.1.0";
  plan.created = "2026-01-02T03:04:05Z";
  plan.run_uuid = "11111111-2222-4333-8444-555555555555";
  plan.name = "sample";
  plan.backend = "cpu";
  plan.argv = "harness sweep sample.yaml --set measure.rounds=4";
  plan.ranks = ranks;
  plan.nodes = (ranks + 1) / 2;
  plan.rounds = rounds;
  plan.warmup_steps = 1;
  plan.steps = 2;
  plan.seed = 0xFEDCBA9876543210u;  // more than a signed number can hold
  plan.smallest_effect = 0.0125;
  plan.interval = "level";
  plan.confidence = 0.98;
  plan.extended = "2";
  plan.looks = "2,4";
  plan.config_text = "name: sample\n# ünïcödé\n" + std::string(70000, 'x') + "\n";  // longer than an attribute may be
  plan.config_path = "configs/sample.yaml";
  plan.overrides = {"measure.rounds=4", "precision=bf16"};
  plan.model = {"custom", 2, 64, 4, 256, 32};
  plan.model.kv_heads = 2;
  plan.model.activation = config::Activation::swiglu;
  plan.model.norm = config::NormKind::rms_norm;
  plan.model.positions = config::Positions::rotary;
  plan.model.rope_theta = 500000;
  plan.model.tied_embeddings = plan.model.biases = false;
  plan.peak_source = "measured: all ranks at once";
  plan.flop_formula = "causal";
  plan.variables = {"precision", "micro_batch_size", "ranks"};
  plan.environment = {{"OMP_NUM_THREADS", "1"}, {"EMPTY", ""}};
  plan.identity = {{"compiler", "g++ 12.2"}};
  plan.warnings = {"bf16 is emulated: expect no speed-up"};
  for (int rank = 0; rank < ranks; ++rank) {
    plan.rank_table.push_back({rank, rank % 2, rank / 2, "node" + std::to_string(rank / 2), "cpu", 8, 4, 64e9});
  }
  for (const std::string name : {"baseline", "baseline_again", "micro_batch_size=2"}) {
    ResultCase row;
    row.name = name;
    const bool changed = plan.cases.size() == 2;
    row.variable = changed ? "micro_batch_size" : "";
    row.value = changed ? "2" : "";
    row.settings = {"fp32", changed ? "2" : "1", "0"};
    row.ranks = ranks;
    row.layout[program::Axis::data] = ranks;
    row.micro_batches = changed ? 2 : 4;
    row.tokens_per_step = 512;
    row.model_flop_per_step = 1.25e9;
    row.noncausal_flop_per_step = 1.5e9;
    row.hardware_flop_per_step = 1.75e9;
    row.planned_memory_bytes = 5e7;
    plan.cases.push_back(row);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int position = 0; position < 3; ++position) {
      ResultBlock block;
      block.round = round;
      block.position = position;
      block.case_index = (round + position) % 3;
      plan.blocks.push_back(block);
    }
  }
  return plan;
}

/// Distinct measurements of block `index`.
struct SampleBlock {
  ResultBlock row;
  std::vector<float> steps, losses, ranks;
};
inline SampleBlock sample_block(const Result& plan, int index) {
  SampleBlock block;
  block.row = plan.blocks[static_cast<std::size_t>(index)];
  block.row.status = BlockStatus::ok;
  block.row.session = 0;
  block.row.start_unix_s = 1.7e9 + index;
  block.row.setup_s = 0.5;
  block.row.first_step_s = 0.75;
  block.row.timed_total_s = 2 + index;
  block.row.peak_memory_bytes = 4e7 + index;
  block.row.peak_memory_rank = index % plan.ranks;
  const int steps = plan.warmup_steps + plan.steps;
  for (int step = 0; step < steps; ++step) {
    block.steps.push_back(static_cast<float>(1 + index + 0.25 * step));
    block.losses.push_back(static_cast<float>(5 - 0.5 * step));
    for (int rank = 0; rank < plan.ranks; ++rank) {
      block.ranks.push_back(rank == plan.ranks - 1 ? nothing : block.steps.back() - 0.0625f * static_cast<float>(rank));
    }
  }
  return block;
}
inline void write_sample(ResultFile& file, const Result& plan, int index) {
  const SampleBlock block = sample_block(plan, index);
  file.write_block(index, block.row, block.steps, block.losses, block.ranks);
}

}  // namespace harness::store
