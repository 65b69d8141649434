#pragma once

#include <string>
#include <vector>

#include "store/result.h"

namespace harness::test::samples {

/// A finished block of the first session.
inline store::ResultBlock finished_block(int round, int position, int case_index) {
  store::ResultBlock block;
  block.round = round;
  block.position = position;
  block.case_index = case_index;
  block.status = store::BlockStatus::ok;
  block.session = 0;
  return block;
}

inline store::ResultInterval interval(int role, int rank, const char* kind, const char* stream, const char* phase,
                                      double start_s, double end_s, const char* what = "") {
  store::ResultInterval row;
  row.role = role;
  row.rank = rank;
  row.kind = kind;
  row.stream = stream;
  row.phase = phase;
  row.what = what;
  row.start_s = start_s;
  row.end_s = end_s;
  return row;
}

/// Returns a sweep as on a machine where every step takes `factor` times as long.
inline store::Result scaled(store::Result result, double factor) {
  for (auto& steps : result.step_seconds) {
    for (auto& step : steps) step = static_cast<float>(step * factor);
  }
  return result;
}

/// Returns a finished sweep of 12 rounds. A change of an operation's size is a point, which other cases name after " at
/// ". `ratios`: each case's step time relative to the baseline's; [0] is 1.
inline store::Result sweep(const std::vector<std::string>& changes, const std::vector<double>& ratios,
                           int rounds = 12) {
  store::Result result;
  result.tool_version = "0.1.0";
  result.created = "2026-01-02T03:04:05Z";
  result.run_uuid = "11111111-2222-4333-8444-555555555555";
  result.name = "laptop";
  result.backend = "cpu";
  result.state = store::RunState::complete;
  result.ranks = 4;
  result.rounds = rounds;
  result.warmup_steps = 2;
  result.steps = 4;
  result.seed = 1;
  result.model.name = "custom";
  result.model.layers = 4;
  result.model.hidden = 128;
  result.model.heads = 4;
  result.model.vocab = 2048;
  result.model.sequence = 128;
  result.peak_source = "measured: matrix products on all ranks at once";
  result.flop_formula = "causal (attention at half, LM head counted, embedding not)";
  result.variables = {"precision", "micro_batch_size", "layout", "overlap_grad_reduce", "ranks"};
  std::vector<std::string> names{"baseline", "baseline_again"};
  names.insert(names.end(), changes.begin(), changes.end());
  for (const auto& name : names) {
    store::ResultCase row;
    row.name = name;
    row.status = store::CaseStatus::ok;
    row.settings = {"fp32", "1", "{tensor_parallel: 1, pipeline_parallel: 1}", "true", "all"};
    const std::size_t at = name.find(" at ");  // a size: "in_place=false at message_size=2 kB"
    const std::string setting = name.substr(0, at);
    if (const auto equals = setting.find('='); equals != std::string::npos) {
      row.variable = setting.substr(0, equals);
      row.value = setting.substr(equals + 1);
      for (std::size_t v = 0; v < result.variables.size(); ++v) {
        if (result.variables[v] == row.variable) row.settings[v] = row.value;
      }
    }
    row.ranks = row.variable == "ranks" ? std::stoi(row.value) : 4;
    row.layout[program::Axis::data] = row.ranks;
    row.micro_batches = 4;
    row.tokens_per_step = 2048;
    row.model_flop_per_step = 12.5e9;
    row.noncausal_flop_per_step = 13e9;
    row.hardware_flop_per_step = 13e9;
    row.peak_flops_per_rank = 45e9;
    row.planned_memory_bytes = 60e6;
    row.program_hash = "0123456789abcdef";
    const bool is_point = row.role() == store::CaseRole::point;
    if (is_point) row.reference = result.case_count();
    if (at != std::string::npos) row.reference = result.index_of(*result.find_case(name.substr(at + 4)));
    result.cases.push_back(row);
  }
  const auto wobble = [](int c, int round, int step) { return ((7 * c + 3 * round + 5 * step + c * round) % 11 - 5); };
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t position = 0; position < names.size(); ++position) {
      const auto c = static_cast<int>((position + static_cast<std::size_t>(round)) % names.size());
      store::ResultBlock block = finished_block(round, static_cast<int>(position), c);
      block.start_unix_s =
          1767323045 + 1200.0 * round + 20.0 * static_cast<double>(position);  // drift is between rounds
      block.peak_memory_bytes = 64.0 * 1048576 * (1 + 0.1 * c);
      std::vector<float> steps, losses;
      for (int step = 0; step < 6; ++step) {
        const double seconds = 0.125 * ratios[static_cast<std::size_t>(c)] * (1 + 0.02 * (round % 4)) *
                               (1 + 0.001 * wobble(c, round, step));
        steps.push_back(static_cast<float>(step < 2 ? 2 * seconds : seconds));
        losses.push_back(static_cast<float>(7.625 - 0.0625 * step));
        if (step >= 2) block.timed_total_s += seconds;
      }
      result.blocks.push_back(block);
      result.step_seconds.push_back(steps);
      result.losses.push_back(losses);
    }
  }
  return result;
}

inline store::ResultBlock* block_of(store::Result& result, int round, int case_index) {
  for (auto& block : result.blocks) {
    if (block.round == round && block.case_index == case_index) return &block;
  }
  return nullptr;
}

/// Adds profiled steps of the baseline, with one stage, and of case 2, with two; rank 1 is late in both.
inline void add_profiled_steps(store::Result& result) {
  const auto add = [&](int c, int role, int rank, const char* kind, const char* stream, const char* phase,
                       double from_ms, double to_ms, double waiting_ms = 0, double bubble_ms = 0) {
    store::ResultInterval x = interval(role, rank, kind, stream, phase, from_ms / 1e3, to_ms / 1e3);
    x.case_index = c;
    x.waiting_s = waiting_ms / 1e3;
    x.bubble_s = bubble_ms / 1e3;
    result.timeline.push_back(x);
  };
  const auto layer = [&](int c, int role, int rank, double from_ms) {
    add(c, role, rank, "matmul", "compute", "forward", from_ms, from_ms + 20);
    add(c, role, rank, "attention", "compute", "forward", from_ms + 20, from_ms + 24);
    add(c, role, rank, "layer_norm", "compute", "forward", from_ms + 24, from_ms + 26);
    add(c, role, rank, "matmul", "compute", "backward", from_ms + 30, from_ms + 60);
    add(c, role, rank, "all_reduce", "data", "gradient_sync", from_ms + 50, 125, 30);
    add(c, role, rank, "adamw", "compute", "optimizer", 126, 130);
    add(c, role, rank, "all_reduce", "world", "finish", 130, 132);
  };
  layer(0, 0, 0, 1);
  layer(2, 0, 0, 1);
  add(2, 1, 2, "receive", "pipeline", "forward", 0, 40, 0, 38);
  add(2, 0, 0, "send", "pipeline", "forward", 27, 29);
  layer(2, 1, 2, 40);
  result.cases[2].layout[program::Axis::pipeline] = 2;
  result.cases[2].layout[program::Axis::data] = 2;
  result.memory_bytes_per_s = 2e10;
  result.operations.push_back({0, 0, 0, "layer_norm", "compute", "forward", "", "", 1, 0, 4e7, 0});
  result.operations.push_back({0, 0, 0, "all_reduce", "data", "gradient_sync", "", "data", 1, 0, 4e7, 0.008});
  for (const int c : {0, 2}) {
    for (int rank = 0; rank < 4; ++rank) {
      const double late_s = rank == 1 ? 0.03 : 0;
      const bool second = c == 2 && rank >= 2;  // the second stage
      const double idle_of_changed_s = second ? 0.005 : 0.004;
      const double idle_s = c == 0 ? 0.006 : idle_of_changed_s;
      const double exposed_s = 0.132 - 0.06 - idle_s - late_s;
      result.splits.push_back({c, rank, 0.132, 0.06 + late_s, exposed_s + 0.01, exposed_s, 0.01, idle_s, 0.001,
                               0.03 - late_s, second ? 0.038 : 0});
      result.totals.push_back({c, rank, "all_reduce", "data", 0.074 - late_s, 1});
      result.totals.push_back({c, rank, "all_reduce", "world", 0.002, 1});
      if (c == 0) result.rank_table.push_back({rank, rank, 0, "node\x1b[2J7", "GPU", 8, 1, 1e9});
    }
  }
}

/// One of each: faster, slower, same, unresolved, failed, impossible, noted, fewer ranks, a warning.
inline store::Result everything() {
  store::Result result =
      sweep({"precision=bf16", "micro_batch_size=2", "micro_batch_size=4", "overlap_grad_reduce=false",
             "layout={tensor_parallel: 2}", "layout={pipeline_parallel: 8}", "ranks=2"},
            {1, 1.001, 1.0002, 0.95, 0.88, 1.011, 1, 1, 1.85});
  result.cases[2].peak_flops_per_rank = 90e9;
  result.cases[2].reason = "bf16 is emulated on this CPU";
  result.cases[6].status = store::CaseStatus::failed;
  result.cases[6].reason =
      "rank 2 on node7: worker killed by signal 11 (segmentation fault) in step 3, matmul; it "
      "said:\n\x1b[31mbad\x1b[0m pointer | and the like, and went on at some length so that this line breaks";
  result.cases[7].status = store::CaseStatus::impossible;
  result.cases[7].reason = "pipeline_parallel 8 needs 8 ranks, there are 4";
  for (auto& block : result.blocks) {
    if (block.case_index == 6 || block.case_index == 7) block.status = store::BlockStatus::pending;
  }
  block_of(result, 3, 3)->status = store::BlockStatus::failed;
  result.warnings = {
      "bf16 is emulated on this CPU: it is correct and slow; a CPU with AVX512-BF16 does it in hardware"};
  return result;
}

inline store::Result nothing_moved() {
  return sweep({"micro_batch_size=2", "overlap_grad_reduce=false"}, {1, 1, 1.001, 0.999});
}

inline store::Result unreliable() {
  return sweep({"micro_batch_size=2"}, {1, 1.06, 0.9});
}

/// Returns a sweep that stopped in round 2 of 12, with an unknown peak.
inline store::Result partial() {
  store::Result result = sweep({"micro_batch_size=2"}, {1, 1.001, 0.9});
  result.state = store::RunState::partial;
  for (auto& block : result.blocks) {
    if (block.round >= 1) block.status = store::BlockStatus::pending;
  }
  for (auto& row : result.cases) row.peak_flops_per_rank = 0;
  result.peak_source = "unknown";
  return result;
}

/// Returns a finished sweep with a timeline of its first three cases (the control has none): two roles, with a
/// computing and a communicating stream that overlap.
inline store::Result with_timeline() {
  store::Result result = sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  result.nodes = 2;
  for (int rank = 0; rank < 4; ++rank)
    result.rank_table.push_back({rank, rank % 2, rank / 2, "node1", "CPU", 2, 1, 1e9});
  for (const int c : {0, 2}) {
    for (const int role : {0, 1}) {
      for (int i = 0; i < 20; ++i) {
        store::ResultInterval row;
        row.case_index = c;
        row.role = role;
        row.rank = 2 * role;
        row.operation = 2 * i;
        row.kind = "matmul";
        row.stream = "compute";
        row.phase = i < 10 ? "forward" : "backward";
        row.what = "qkv";
        row.micro_batch = 0;
        row.layer = i % 10;
        row.start_s = 0.001 * i;
        row.end_s = row.start_s + 0.0009;
        result.timeline.push_back(row);
        if (i < 10) continue;
        row.operation = 2 * i + 1;
        row.kind = "all_reduce";
        row.stream = "dp";
        row.what = "";
        row.layer = row.micro_batch = -1;
        row.start_s += 0.0005;
        row.end_s = row.start_s + 0.0008;
        result.timeline.push_back(row);
      }
    }
    for (int rank = 0; rank < 4; ++rank) {
      result.splits.push_back({c, rank, 0.0205, 0.018, 0.008, 0.0015, 0.0065, 0.001});
    }
  }
  return result;
}

}  // namespace harness::test::samples
