#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "backend/backend.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "plan/plan.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::cli {
namespace {

using ::testing::HasSubstr;

FirstMachine node(const std::string& gpu, double memory_bytes, int gpus) {
  machine::GpuHealth one;
  one.name = gpu;
  one.memory_bytes = memory_bytes;
  return {.gpus = std::vector<machine::GpuHealth>(gpus, one), .cores = 64, .cpu = "a CPU"};
}
const FirstMachine laptop{.gpus = {}, .cores = 2, .cpu = "a CPU"};

// The file that init writes loads without a warning and every case of it can run.
plan::Plan plan_of(const FirstConfiguration& first) {
  const config::Experiment e = config::load_experiment("harness.yaml", {}, first.text);
  EXPECT_TRUE(e.warnings.empty()) << e.warnings.front();
  plan::Plan p = plan::prepare(e, first.ranks, {});
  for (const plan::PlannedCase& c : p.cases) {
    EXPECT_EQ(c.impossible, "") << c.name;
    EXPECT_TRUE(c.notes.empty()) << c.name << ": " << c.notes.front();
  }
  return p;
}

TEST(Init, EveryMachineGetsAPlanThatRuns) {
  for (const int ranks : {1, 3, 8}) {
    SCOPED_TRACE(ranks);
    plan_of(first_configuration(laptop, {.ranks = ranks, .backend = ""}));
    plan_of(first_configuration(node("NVIDIA H100 80GB HBM3", 80e9, 8), {.ranks = ranks, .backend = ""}));
  }
}

TEST(Init, TheGpusNameFindsItsHardwareAndAModelThatFits) {
  const plan::Plan h100 = plan_of(first_configuration(node("NVIDIA H100 80GB HBM3", 80e9, 8), {}));
  EXPECT_EQ(h100.experiment.backend, config::BackendKind::cuda);
  EXPECT_EQ(h100.ranks, 8);
  ASSERT_TRUE(h100.experiment.hardware);
  EXPECT_EQ(h100.experiment.hardware->name, "H100 SXM5 80GB");
  for (const plan::PlannedCase& c : h100.cases)
    EXPECT_LT(plan::planned_memory_bytes(h100.experiment, c), 80e9) << c.name;

  const plan::Plan a10 = plan_of(first_configuration(node("NVIDIA A10", 24e9, 1), {}));
  for (const plan::PlannedCase& c : a10.cases) EXPECT_LT(plan::planned_memory_bytes(a10.experiment, c), 24e9) << c.name;
  EXPECT_LT(a10.experiment.model.layers * a10.experiment.model.hidden,
            h100.experiment.model.layers * h100.experiment.model.hidden);
}

TEST(Init, WhatTheGpuIsDecidesOnMfuAndPrecision) {
  const FirstConfiguration unknown = first_configuration(node("Some GPU", 40e9, 2), {});
  EXPECT_THAT(unknown.text, HasSubstr("hardware: none "));
  EXPECT_THAT(unknown.text, HasSubstr("no hardware file lists the Some GPU"));
  plan_of(unknown);
  const FirstConfiguration volta = first_configuration(node("Tesla V100-SXM2-16GB", 16e9, 1), {});
  EXPECT_EQ(plan_of(volta).experiment.baseline.precision, config::Precision::fp32);
}

TEST(Init, OptionsChooseBackendAndRanks) {
  EXPECT_EQ(plan_of(first_configuration(laptop, {})).ranks, 2);
  const FirstConfiguration for_cluster = first_configuration(laptop, {.ranks = 0, .backend = "cuda"});
  EXPECT_EQ(for_cluster.ranks, 8);
  EXPECT_THAT(for_cluster.text, HasSubstr("no GPU here"));
  const FirstConfiguration on_cores = first_configuration(node("NVIDIA A10", 24e9, 1), {.ranks = 4, .backend = "cpu"});
  EXPECT_EQ(plan_of(on_cores).experiment.backend, config::BackendKind::cpu);
  EXPECT_THAT(test::error_of([] { first_configuration(laptop, {.ranks = 0, .backend = "sim"}); }),
              HasSubstr("--backend sim: a first configuration measures"));
  EXPECT_THAT(test::error_of([] { first_configuration(laptop, {.ranks = 0, .backend = "gpu"}); }),
              HasSubstr("allowed: cpu, cuda"));
}

TEST(Init, WritesAFileOnceAndSaysHowToGoOn) {
  const test::TemporaryFolder folder;
  const InitOptions options{.ranks = 2, .backend = "cpu", .output = folder / "mine.yaml"};
  std::ostringstream out;
  setenv("HARNESS_CALLED", "/opt/site/harness", 1);  // as the launcher passes on what was typed
  EXPECT_EQ(init(options, out), 0);
  unsetenv("HARNESS_CALLED");
  EXPECT_THAT(out.str(), HasSubstr("  /opt/site/harness plan " + options.output + " --ranks 2"));
  EXPECT_THAT(out.str(), HasSubstr(" /opt/site/harness sweep " + options.output));
  EXPECT_THAT(test::text_of(options.output), HasSubstr("/opt/site/harness sweep " + options.output));
  EXPECT_THAT(test::text_of(options.output), HasSubstr("backend: cpu\n"));
  const std::string before = test::text_of(options.output);
  EXPECT_THAT(test::error_of([&] { init(options, out); }), HasSubstr("exists; -o names another file"));
  EXPECT_EQ(test::text_of(options.output), before);
}

}  // namespace
}  // namespace harness::cli
