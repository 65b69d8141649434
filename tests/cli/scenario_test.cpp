// The cluster as found, predicted: each fix shortens the step, and the numbers of a case are consistent. Data loading
// in virtual time: its exposed part, and the remedies named.
#include <filesystem>
#include <map>

#include "analysis/findings.h"
#include "said.h"

namespace harness::cli {
namespace {

nlohmann::json cases_of(const std::string& config, const std::vector<std::string>& more = {}) {
  const Said said = say({"plan", shipped(config), "--backend", "sim", "--ranks", "128", "--format", "json"}, more);
  EXPECT_EQ(said.code, 0) << said.err;
  return said.json()["cases"];
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
    // Every case has the same number of tokens: MFU grows in proportion to throughput.
    EXPECT_NEAR(as_found_s / step_s, mfu / as_found_mfu, 1e-9 * as_found_s / step_s);
    if (!last.empty() && !name.starts_with(last + " + ")) continue;  // a fix alone
    EXPECT_LT(step_s, 0.999 * before_s) << "adds nothing to the fixes before it";
    before_s = step_s;
    last = name;
    ++rungs;
  }
  EXPECT_EQ(rungs, 8);
  EXPECT_GT(as_found_s / before_s, 10);
}

TEST(Scenario, ABreakdownNamesTheFixThatTriedAVariable) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(simulate(prediction(shipped("scenarios/16node-as-found.yaml"), folder / "a.h5", 128)).code, 0);
  const std::string text = say({"show", "--breakdown", folder / "a.h5"}).out;
  EXPECT_THAT(text, ::testing::ContainsRegex("layout .* TP2 too close to call"));
  EXPECT_THAT(text, ::testing::ContainsRegex("sharding .* only with others"));
}

// Each fault alone slows the step. Mended, the step is as without the fault.
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

// A rank's batch: 8 sequences of 2048 tokens, 2 bytes each.
constexpr double batch_tokens = 8 * 2048, batch_bytes = 2 * batch_tokens;
constexpr const char* slow_storage = R"(name: data
backend: sim
hardware: h100-sxm
model: gpt3-125m
baseline: {precision: bf16, micro_batch_size: 8, global_batch_size: 64, data_file: no-such-file.bin,
           loader_workers: 1, loader_prefetch: 1, loader_throughput: 100 kB/s}
sweep:
  loader_throughput: [none, 100 GB/s]
  loader_workers: [0]
combine:
  - {loader_throughput: none, loader_cost: 50 us}
  - {loader_throughput: none, loader_cost: 50 us, loader_workers: 8, loader_prefetch: 8}
measure: {rounds: 1}
)";

class DataLoading : public ::testing::Test {
 protected:
  store::Result predicted() {
    const std::string file = folder_ / "data.h5";
    const Said said = simulate(prediction(folder_.write("data.yaml", slow_storage), file, 8));
    EXPECT_EQ(said.code, 0) << said.err;
    return store::read_result(file, {.rank_seconds = true, .timeline = true});
  }
  test::TemporaryFolder folder_;
};

TEST_F(DataLoading, GrowsWhileTheOtherPartsStay) {
  const store::Result result = predicted();
  const analysis::Findings found = analysis::find_all(result);
  ASSERT_EQ(found.steps.size(), 6u);
  const auto mean = [&](std::size_t i) -> const analysis::Breakdown& { return found.steps[i].breakdown.mean; };
  const analysis::Breakdown& fast = mean(1);
  const double storage_s = batch_bytes / 100e3, cost_s = batch_tokens * 50e-6;
  ASSERT_LT(fast.step_s, cost_s / 8);                          // the planted loading is longer than a step
  const std::vector<double> expected{storage_s,                // one batch, loaded in advance, per step
                                     fast.step_s,              // unlimited
                                     fast.step_s,              // enough
                                     fast.step_s + storage_s,  // on the step's path
                                     cost_s,                   // of one worker
                                     cost_s / 8};              // of eight
  EXPECT_NEAR(fast[Part::loading].value_or(0), 0, 1e-9);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(result.at(found.steps[i]).name);
    EXPECT_NEAR(mean(i).step_s, expected[i], 1e-5 * expected[i]);
    EXPECT_NEAR(mean(i)[Part::loading].value_or(0), expected[i] - fast.step_s, 1e-5 * expected[i]);
    for (const Part part : all_parts) {
      if (part == Part::loading) continue;
      EXPECT_NEAR(mean(i)[part].value_or(0), fast[part].value_or(0), 1e-6) << name_of(part);
    }
    EXPECT_NEAR(found.summary.cases[i].step_seconds, expected[i], 1e-5 * expected[i]);
  }
}

TEST_F(DataLoading, IsTheBottleneckAndTheRemedyNamesWhatToChange) {
  const store::Result result = predicted();
  const analysis::Findings found = analysis::find_all(result);
  const auto evidence = [&](std::size_t i) {
    EXPECT_EQ(found.steps[i].bottleneck.kind, analysis::BottleneckKind::loading);
    return found.steps[i].bottleneck.evidence;
  };
  EXPECT_THAT(evidence(0), HasSubstr("1 loader worker with loader_prefetch 1"));
  EXPECT_THAT(evidence(3), HasSubstr("loader_workers are 0"));
  EXPECT_THAT(evidence(4), HasSubstr("do not keep up"));
  EXPECT_NE(found.steps[1].bottleneck.kind, analysis::BottleneckKind::loading);
  std::vector<std::string> levers;
  for (const analysis::Lever& lever : found.steps[0].bottleneck.levers) levers.push_back(lever.variable);
  EXPECT_THAT(levers, ::testing::IsSupersetOf({"loader_workers", "loader_prefetch", "loader_throughput"}));
}

TEST_F(DataLoading, MakeTokensKeepsAFileThatIsThere) {
  const std::string path = folder_ / "tokens.bin";
  const auto made = [&](const std::vector<std::string>& more) {
    return say({"make-tokens", path, "--vocabulary", "1000", "--tokens"}, more);
  };
  EXPECT_THAT(made({"100"}).out, HasSubstr("100 tokens of a vocabulary of 1000"));
  EXPECT_EQ(std::filesystem::file_size(path), 32u + 200u);
  EXPECT_THAT(made({"50"}).err, HasSubstr("choose another name, or give --force"));  // this verb has no -o
  EXPECT_EQ(std::filesystem::file_size(path), 32u + 200u);
  EXPECT_EQ(made({"50", "--force"}).code, 0);
  EXPECT_EQ(std::filesystem::file_size(path), 32u + 100u);
  EXPECT_EQ(made({"0", "--force"}).code, 1);
  EXPECT_EQ(std::filesystem::file_size(path), 32u + 100u);
}

}  // namespace
}  // namespace harness::cli
