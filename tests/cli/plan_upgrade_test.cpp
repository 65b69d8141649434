#include <filesystem>
#include <map>

#include "cli/plan.h"
#include "explain/explain.h"
#include "said.h"

namespace harness::cli {
namespace {

// A few layers of a GPT-3 1.3B on two nodes: large enough for its communication to matter.
constexpr const char* on_h100 = R"(name: cluster
backend: sim
hardware: dgx-h100
model: {layers: 4, hidden: 2048, heads: 16, vocab: 50304, sequence: 2048}
baseline: {precision: bf16, micro_batch_size: 1, global_batch_size: 64, layout: {tensor_parallel: 1, pipeline_parallel: 1}}
sweep:
  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]
  overlap_grad_reduce: [false]
)";

using SecondsByCase = std::map<std::string, double>;

SecondsByCase seconds_of(const nlohmann::json& plan, const char* key = "predicted_step_seconds") {
  SecondsByCase seconds;
  for (const auto& row : plan["cases"]) seconds[row["name"]] = row[key];
  return seconds;
}

void expect_near(const SecondsByCase& forecast, const SecondsByCase& truth, double tolerance) {
  ASSERT_EQ(forecast.size(), 4u);
  for (const auto& [name, seconds] : forecast) EXPECT_NEAR(seconds, truth.at(name), tolerance * truth.at(name)) << name;
}

// The simulation is the ground truth: a sweep's result on one cluster is planned onto another with a known step.
class PlanUpgrade : public ::testing::Test {
 protected:
  void measure(const std::vector<std::string>& overrides = {}) {
    const Said said = simulate(prediction(config_, file_, 16, overrides));
    ASSERT_EQ(said.code, 0) << said.err;
  }
  nlohmann::json moved_to(const std::string& hardware) const {
    return say({"plan", file_, "--hardware", hardware, "--format", "json"}).json();
  }
  SecondsByCase truth_on(const std::string& hardware, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> arguments{"plan", config_, "--ranks", "16", "--hardware", hardware, "--format", "json"};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    return seconds_of(say(arguments).json());
  }

  test::TemporaryFolder folder_;
  std::string config_ = folder_.write("cluster.yaml", on_h100);
  std::string file_ = std::filesystem::path(config_).replace_extension("h5").string();
};

TEST_F(PlanUpgrade, AHealthyStepIsWhatIsPredictedThere) {
  measure();
  // Other GPUs, another network, and other node sizes.
  for (const char* hardware : {"hgx-b200", "dgx-a100", "gb200-nvl72"}) {
    SCOPED_TRACE(hardware);
    const SecondsByCase truth = truth_on(hardware);
    const nlohmann::json moved = moved_to(hardware);
    expect_near(seconds_of(moved), truth, 1e-3);
    expect_near(seconds_of(moved, "as_predicted_step_seconds"), truth, 1e-6);
    for (const auto& row : moved["cases"]) EXPECT_GT(row["predicted_mfu"], 0.05) << row;
  }
}

// A fault of the measured cluster also slows the step on the new hardware.
TEST_F(PlanUpgrade, WhatIsWrongMovesAlong) {
  std::map<std::string, double> healthy_s;
  for (const std::string hardware : {"hgx-b200", "dgx-a100"}) healthy_s[hardware] = truth_on(hardware)["baseline"];
  for (const std::string fault : {"socket_fallback: true", "no_gpudirect: true", "slow_link: {node: 1, share: 50 %}",
                                  "slow_gpu: {rank: 3, speed: 70 %}"}) {
    const std::vector<std::string> faults{fmt::format("faults={{{}}}", fault)};
    measure(faults);
    for (const std::string hardware : {"hgx-b200", "dgx-a100"}) {
      // TCP is limited to an absolute rate, not to a share of the network, and this network has half the rate.
      if (hardware == "dgx-a100" && fault == "socket_fallback: true") continue;
      SCOPED_TRACE(fmt::format("{} {}", hardware, fault));
      const SecondsByCase truth = truth_on(hardware, faults);
      // The forecast uses the mean computation of all ranks, also for a slow GPU.
      expect_near(seconds_of(moved_to(hardware)), truth, fault.starts_with("slow_gpu") ? 0.06 : 0.01);
      EXPECT_GT(truth.at("baseline"), 1.1 * healthy_s.at(hardware));
    }
  }
}

// Ranks are dealt to the nodes one by one: the cases that this slows are slow on the new cluster as well.
TEST_F(PlanUpgrade, RanksStandWhereTheCaseHadThem) {
  const std::vector<std::string> faults{"faults={tensor_across_nodes: true}"};
  measure(faults);
  folder_.write("hardware/small-nodes.yaml",
                "name: small nodes\nsource: a test\ngpu: b200\n"
                "node: {gpus: 4, network: 200 GB/s, nics: 4, nvswitch: true}\n");
  const std::string across = "layout={tensor_parallel: 2, pipeline_parallel: 1}";
  // An equal number of nodes, more and smaller nodes, and a single node.
  for (const std::string hardware : {"hgx-b200", "small-nodes", "gb200-nvl72"}) {
    SCOPED_TRACE(hardware);
    const SecondsByCase truth = truth_on(hardware, faults), healthy = truth_on(hardware);
    if (hardware == "gb200-nvl72") {
      EXPECT_EQ(truth, healthy);
    } else {
      EXPECT_GT(truth.at(across), 1.1 * healthy.at(across));
    }
    expect_near(seconds_of(moved_to(hardware)), truth, 0.01);
  }
}

TEST_F(PlanUpgrade, OnTheSameHardwareNothingChanges) {
  measure({"faults={slow_link: {node: 1, share: 30 %}, slow_gpu: {rank: 3, speed: 70 %}}"});
  const nlohmann::json moved = moved_to("dgx-h100");
  expect_near(seconds_of(moved), seconds_of(moved, "step_seconds"), 1e-9);
}

// A measured file gives the same forecast as a predicted one: no settings of the simulation are needed.
TEST_F(PlanUpgrade, AMeasuredFileMovesAsAPredictedOne) {
  measure({"faults={slow_link: {node: 1, share: 50 %}}"});
  const store::Result predicted = store::read_result(file_);
  store::Result measured = predicted;
  measured.config_text = replaced_all(measured.config_text, "backend: sim", "backend: cuda");
  measured.backend = "cuda";
  measured.overrides.clear();  // the faults are part of the measurement
  const explain::Upgrade here = explain::move_to(predicted, "p5"), there = explain::move_to(measured, "p5");
  EXPECT_TRUE(here.of_prediction);
  EXPECT_FALSE(there.of_prediction);
  ASSERT_EQ(here.cases.size(), 4u);
  ASSERT_EQ(there.cases.size(), 4u);
  for (std::size_t i = 0; i < here.cases.size(); ++i) EXPECT_EQ(there.cases[i].forecast_s, here.cases[i].forecast_s);
}

TEST_F(PlanUpgrade, EachCaseHasTheErrorOfItsPrediction) {
  measure({"sweep={ranks: [1]}", "calibration=megatron-2022"});
  const nlohmann::json moved = moved_to("dgx-a100");
  EXPECT_LT(moved["cases"][0]["expected_error"], moved["cases"][1]["expected_error"]) << moved;
  EXPECT_THAT(
      unwrapped(say({"plan", file_, "--hardware", "dgx-a100"}).out),
      AllOf(HasSubstr("1 of 2 cases: expected error: "), HasSubstr("! 1 of 2 cases: the number of ranks 1 lies")));
}

TEST_F(PlanUpgrade, WarnsOfMessagesBeyondThoseThatWereMeasured) {
  const std::string calibration = folder_.write(
      "known.yaml", test::text_of(shipped("calibration/harness.yaml")) +
                        "errors: [{id: a, gpu: h100-sxm, group: a, lab: own, error: 1 %}]\n"
                        "calibrated: {gpus: [h100-sxm], ranks: 1 to 4096, hidden: 1 to 65536, sequence: 1 to 65536, "
                        "message_bytes: 1 to 4}\n");
  measure({"calibration=" + calibration});
  EXPECT_THAT(unwrapped(say({"plan", file_, "--hardware", "p5"}).out),
              AllOf(HasSubstr("; tier E: "), HasSubstr("the largest collective, ")));
}

TEST_F(PlanUpgrade, SaysWhatItIs) {
  measure({"faults={socket_fallback: true}"});
  EXPECT_THAT(unwrapped(say({"plan", file_, "--hardware", "hgx-b200"}).out),
              AllOf(HasSubstr("cluster: predicted on DGX H100; predicted, not measured: the same steps on HGX B200"),
                    HasSubstr("speed-up"), HasSubstr("The network between nodes is taken to have 1.3 % of its rate"),
                    HasSubstr("\n! uncalibrated")));
  EXPECT_THAT(say({"plan", file_, "--hardware", "hgx-b200", "--columns", "speed-up"}).out,
              ::testing::ContainsRegex("\ncase +speed-up\n"));
  setenv("COLUMNS", "80", 1);
  const std::string narrow = say({"plan", file_, "--hardware", "hgx-b200"}).out;
  unsetenv("COLUMNS");
  EXPECT_THAT(narrow, HasSubstr("Left out to fit: as predicted (--columns)."));
  const auto only = [&](const std::string& file, const std::string& word) {
    const auto cases =
        say({"plan", file, "--hardware", "hgx-b200", "--only", word, "--format", "json"}).json()["cases"];
    return cases.size() == 1 ? cases[0]["name"].get<std::string>() : "";
  };
  EXPECT_EQ(only(file_, "overlap_grad_reduce"), "overlap_grad_reduce=false");
  const std::string other_name = folder_ / "result";
  std::filesystem::copy(file_, other_name);
  EXPECT_EQ(only(other_name, "TP2"), "layout={tensor_parallel: 2, pipeline_parallel: 1}");
}

TEST_F(PlanUpgrade, RefusesWhatItCannotAnswer) {
  measure();
  const auto refusal = [&](const std::vector<std::string>& more) { return say({"plan", file_}, more).err; };
  EXPECT_THAT(refusal({}), HasSubstr("is a result: it says what ran, not what would"));
  EXPECT_THAT(say({"plan", folder_ / "none.h5"}).err, HasSubstr("none.h5: no such file"));
  EXPECT_THAT(refusal({"--hardware", "hgx-b2000"}), HasSubstr("hgx-b200"));
  EXPECT_THAT(refusal({"--hardware", "p5", "--set", "micro_batch_size=2"}),
              HasSubstr("cannot change what was measured"));
  for (const std::string of_a_plan : {"--best=3", "--assume-mfu=40%", "--budget=baseline"})
    EXPECT_THAT(refusal({"--hardware", "p5", of_a_plan}), HasSubstr("and nothing else")) << of_a_plan;
  EXPECT_THAT(refusal({"--hardware", "p5", "--only", "no_such"}), HasSubstr("no case of this name"));
  EXPECT_THAT(say({"plan", test::source_dir() + "/results/example.h5", "--hardware", "p5"}).err,
              HasSubstr("its step is one of backend cpu"));
  store::Result result = store::read_result(file_);
  const auto error = [](const store::Result& r) { return test::error_of([&] { explain::move_to(r, "p5"); }); };
  store::Result without = result;
  without.timeline.clear();
  EXPECT_THAT(error(without), HasSubstr("no profiled step"));
  without = result;
  without.config_text = replaced_all(without.config_text, "hardware: dgx-h100\n", "");
  EXPECT_THAT(error(without), HasSubstr("hardware"));
  for (store::ResultCase& row : result.cases) row.planned_memory_bytes = 1e12;
  EXPECT_THAT(explain::move_to(result, "p5").cases[0].too_large, HasSubstr("of memory per rank"));
}

}  // namespace
}  // namespace harness::cli
