#pragma once

#include <string>
#include <vector>

#include "analysis/findings.h"
#include "support/sample_results.h"

namespace harness::test {

/// A sweep of single operations: steps of ten operations of 0.125 s times the ratio.
inline store::Result operations(const std::vector<std::string>& changes, const std::vector<double>& ratios,
                                double bus_factor) {
  store::Result result = test::samples::sweep(changes, ratios);
  result.variables.emplace_back(bus_factor > 0 ? "message_size" : "gemm");
  for (std::size_t c = 0; c < result.cases.size(); ++c) {
    store::ResultCase& row = result.cases[c];
    const store::ResultCase& point = result.case_at(row.reference);
    row.settings.push_back(point.variable == result.variables.back() ? point.value : "1 kB");
    row.tokens_per_step = 0;
    if (bus_factor > 0) row.model_flop_per_step = 0;
    const double bytes = row.settings.back() == "1 kB" ? 1e3 : 1e9;
    result.points.push_back(
        {static_cast<int>(c), bus_factor > 0 ? "all_reduce" : "gemm", 10, bytes, bus_factor, 0, ""});
  }
  return result;
}

}  // namespace harness::test

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

/// Everything that a report can show, in each of its tables; `name` takes the place of all text from outside.
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
  result.nccl_calls = {{{"AllReduce", 1 << 20, "Ring", "Simple", 0, 15, 4}, 0}, {{name, 12, name, name, 1, 1, 4}, 2}};
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
    for (int rank = 0; rank < 4; ++rank)
      result.splits.push_back({c, rank, 0.12, 0.1, 0.01, 0.01, 0, 0.01});  // step, compute, exposed …, idle
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
    result.gpu.push_back(
        {4, {.mean_utilisation = 0.98, .mean_sm_clock_hz = 1.98e9, .mean_power_w = 640, .energy_j = 300}, ""});
    result.blocks[i].start_unix_s = 1767364200 + 20 * static_cast<double>(i);
    const bool busy = result.blocks[i].round > 8;
    result.conditions.push_back({0.001, busy ? 7.5 : 0.25, name});
  }
  return result;
}

/// Explains a baseline: a slow link that could be a narrow PCIe link. `name` replaces all text from the file.
inline analysis::Explanation explanation(const std::string& name = "node5") {
  analysis::CaseCompared compared;
  compared.measured_s = 0.4;
  compared.predicted_s = 0.3;
  compared.kinds = {{"all_reduce", "data", false, 0.24, 0.12, 0.2, 0.1},
                    {"matmul", "", false, 0.15, 0.15, 0.15, 0.15},
                    {"matmul", "", true, 0.03, 0.03, 0.03, 0.03},
                    {"embedding", "", false, 1e-6, 1e-6, 1e-6, 1e-6}};
  compared.parts = {{Part::waiting, 0.02, 0.02}, {Part::idle, 0, 0}};
  analysis::Cause cause;
  cause.fault = "slow_link";
  cause.words = name + " has 50 % of its network";
  cause.or_else = {{"pcie_downgraded", "the PCIe links of " + name + " carry 40 % of what they should"}};
  cause.checks = {"load.pairs", "pcie.width"};
  cause.with_s = 0.39;
  cause.explains = 0.97;
  analysis::Explanation explained;
  explained.hardware = "DGX H100";
  explained.calibration = "harness on CUDA";
  explained.cases.push_back(compared);
  explained.diagnosis = analysis::Diagnosis{0, 0.4, 0.3, 0.39, 1, 0.056, true, {cause}};
  explained.not_predicted = {{1, "a prediction does not know " + name}};
  return explained;
}

}  // namespace harness::test::samples
