#pragma once

#include <string>

#include "analysis/explanation.h"

namespace harness::test::samples {

/// Of the baseline of a result: a slow link that could be a narrow PCIe link. `name` stands wherever a text comes from
/// the file.
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
