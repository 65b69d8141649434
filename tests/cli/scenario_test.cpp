// The cluster that somebody found, predicted: each fix moves what it should, and the numbers of a case agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "said.h"
#include "support/paths.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

Said plan_of(const std::string& config, const std::vector<std::string>& more) {
  const Said said =
      say({"plan", test::source_dir() + "/configs/" + config, "--backend", "sim", "--ranks", "128"}, more);
  EXPECT_EQ(said.code, 0) << said.err;
  return said;
}

nlohmann::json cases_of(const std::string& config, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--format", "json"});
  return plan_of(config, more).json()["cases"];
}

TEST(Scenario, IsBroughtUpOneFixAtATime) {
  const nlohmann::json cases = cases_of("scenarios/16node-as-found.yaml");
  double as_found_s = 0, as_found_mfu = 0, before_s = 0;
  std::string last;
  int rungs = 0;
  for (const auto& row : cases) {
    const std::string name = row["name"];
    if (name == "baseline_again") continue;
    SCOPED_TRACE(name);
    const double step_s = row["predicted_step_seconds"], mfu = row["predicted_mfu"];
    double path_s = 0;
    for (const auto& [part, seconds] : row["predicted_critical_path"].items()) path_s += seconds.get<double>();
    EXPECT_NEAR(path_s, step_s, 1e-9);
    if (name == "baseline") {
      as_found_s = before_s = step_s;
      as_found_mfu = mfu;
      EXPECT_GT(mfu, 0.01);
      EXPECT_LT(mfu, 0.10);
      continue;
    }
    // As many tokens in every case: what the throughput gains the MFU gains.
    EXPECT_NEAR(as_found_s / step_s, mfu / as_found_mfu, 1e-9 * as_found_s / step_s);
    if (!last.empty() && !name.starts_with(last + " + ")) continue;  // alone
    EXPECT_LT(step_s, 0.999 * before_s) << "adds nothing to the fixes before it";
    before_s = step_s;
    last = name;
    ++rungs;
  }
  EXPECT_EQ(rungs, 8);
  EXPECT_GT(as_found_s / before_s, 10);
}

// Each fault alone slows the step, with the part of it that it should; mended, it is as if it had never been.
TEST(Scenario, EachFaultCostsAndMendedItDoesNot) {
  const std::vector<std::string> one{"--only", "baseline",           "--set", "baseline.layout={tensor_parallel: 2}",
                                     "--set",  "calibration=harness"};
  const auto step_s = [&](const std::string& faults, const std::string& mended) {
    std::vector<std::string> arguments = one;
    if (!faults.empty()) arguments.insert(arguments.end(), {"--set", "faults=" + faults});
    if (!mended.empty()) arguments.insert(arguments.end(), {"--set", "baseline.mended=" + mended});
    return cases_of("16node.yaml", arguments)[0]["predicted_step_seconds"].get<double>();
  };
  const double healthy = step_s("", "");
  const std::map<std::string, std::string> faults{{"slow_gpu", "{slow_gpu: {rank: 3, speed: 0.8}}"},
                                                  {"slow_link", "{slow_link: {node: 3, share: 0.5}}"},
                                                  {"pcie_downgraded", "{pcie_downgraded: {rank: 3, share: 0.5}}"},
                                                  {"socket_fallback", "{socket_fallback: true}"},
                                                  {"no_gpudirect", "{no_gpudirect: true}"},
                                                  {"acs_on", "{acs_on: true}"},
                                                  {"tensor_across_nodes", "{tensor_across_nodes: true}"}};
  for (const auto& [name, fault] : faults) {
    EXPECT_GT(step_s(fault, ""), 1.05 * healthy) << name;
    EXPECT_EQ(step_s(fault, name), healthy) << name;
  }
}

std::string path_with(const std::string& fault) {
  const std::string out = plan_of("16node.yaml", {"--only", "baseline", "--set", "faults=" + fault, "--set",
                                                  "baseline.layout={tensor_parallel: 2}"})
                              .out;
  constexpr std::string_view heading = "critical path of the baseline: ";
  const std::size_t at = out.find(heading);
  EXPECT_NE(at, std::string::npos);
  return out.substr(at + heading.size(), out.find('\n', at) - at - heading.size());
}

TEST(Scenario, TheCriticalPathGoesWhereTheFaultIs) {
  EXPECT_THAT(path_with("{socket_fallback: true}"), StartsWith("data communication"));
  EXPECT_THAT(path_with("{slow_gpu: {rank: 3, speed: 0.5}}"), StartsWith("matrix products"));
  EXPECT_THAT(path_with("{tensor_across_nodes: true}"), StartsWith("tensor communication"));
}

}  // namespace
}  // namespace harness::cli
