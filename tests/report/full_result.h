#pragma once

#include "support/sample_results.h"

namespace harness::test::samples {

inline const char* const hostile =
    "</title><script>alert(1)</script>\"'><img src=x onerror=alert(1)> \x1b[31m\x07\xff `a` | [x](http://e)";

inline store::ResultInterval interval(int case_index, int role, int operation, const std::string& kind, double start_s,
                                      double end_s) {
  store::ResultInterval row = interval(role, 2 * role, kind.c_str(), "compute", "forward", start_s, end_s);
  row.case_index = case_index;
  row.operation = operation;
  return row;
}

/// Everything that a report can show, in each of its tables; `name` stands wherever a text comes from outside.
inline store::Result full(const std::string& name = "node7") {
  store::Result result = everything();
  result.name = name;
  result.model.name = name;
  result.argv = "sweep " + name;
  result.config_text = "name: " + name + "\n";
  result.config_path = "configs/" + name + ".yaml";
  result.overrides = {"name=" + name};
  result.environment = {{"NCCL_DEBUG", name}};
  result.identity = {{"harness", "0.1.0 (git 0123456789)"}, {name, name}};
  result.tuning = {{name, name}};
  result.warnings.push_back(name + ": look at it");
  result.cases[4].name = "env={A: " + name + "}";
  result.cases[6].reason = name;
  for (int rank = 0; rank < 4; ++rank) {
    result.rank_table.push_back({rank, rank % 2, rank / 2, name, name, 64, 16, 1e12});
  }
  result.nccl_facts = {{0, "version", "2.28.9"},
                       {0, name, name},
                       {3, "not honoured", "nccl_algo: " + name},
                       {2, "not confirmed", name},
                       {2, "version", "2.28.8"}};
  result.nccl_calls = {{0, "AllReduce", "Ring", "Simple", 1 << 20, 4, 0, 15}, {2, name, name, name, 12, 4, 1, 1}};
  constexpr const char* kinds[] = {"matmul", "attention", "adamw"};
  for (int c = 0; c < static_cast<int>(result.cases.size()); ++c) {
    if (c == 1) continue;
    for (int role = 0; role < 2; ++role) {
      for (int i = 0; i < 300; ++i) {
        store::ResultInterval row = interval(c, role, i, kinds[i % 3], 4e-4 * i, 4e-4 * (i + 0.9));
        if (i % 50 == 49) {
          row.kind = "all_reduce";
          row.stream = "data";
          row.what = name;
        }
        result.timeline.push_back(row);
      }
    }
    for (int rank = 0; rank < 4; ++rank) {
      store::ResultSplit split{};
      split.case_index = c;
      split.rank = rank;
      split.step_s = 0.12;
      split.compute_s = 0.1;
      split.communication_s = 0.01;
      split.exposed_s = 0.01;
      split.idle_s = 0.01;
      result.splits.push_back(split);
    }
  }
  result.doctor.findings = {
      {-1, "fail", "pcie.width", name, 1, name, "reseat the card", "https://docs.kernel.org"},
      {-1, "warn", "cpu.governor", "all 2", 2, "powersave, not performance", "set it", "docs/doctor.md"},
      {4, "info", "env.without_effect", name, 1, "it has no effect here", "unset it", name}};
  const auto ranks = static_cast<std::size_t>(result.ranks);
  for (const auto& steps : result.step_seconds) {
    std::vector<float> seconds;
    for (std::size_t i = 0; i < steps.size() * ranks; ++i) {
      seconds.push_back(steps[i / ranks] * (i % ranks == 2 ? 1.0F : 0.96F));
    }
    result.rank_seconds.push_back(seconds);
  }
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    store::ResultGpu gpu;
    gpu.ranks = 4;
    gpu.together.mean_utilisation = 0.98;
    gpu.together.mean_sm_clock_hz = 1.98e9;
    gpu.together.mean_power_w = 640;
    gpu.together.energy_j = 300;
    result.gpu.push_back(gpu);
    result.blocks[i].start_unix_s = 1767364200 + 20 * static_cast<double>(i);
    const bool busy = result.blocks[i].round > 8;
    result.conditions.push_back({busy ? 9.0 : 1.0, 0.001, busy ? 7.5 : 0.25, 3e9, name});
  }
  return result;
}

}  // namespace harness::test::samples
