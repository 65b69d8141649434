#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "plan/plan.h"
#include "small_experiment.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

config::Experiment sweep_of_batches() {
  config::Experiment e = test::small_experiment();
  e.model = {"custom", 2, 256, 4, 1024, 256};
  test::add_change(e, "micro_batch_size", "2");
  test::add_change(e, "micro_batch_size", "8");
  test::add_change(e, "memory_cap", "50 %");
  return e;
}

double bytes_of(const Plan& plan, std::size_t i) {
  return planned_memory_bytes(plan.experiment, plan.cases[i]);
}

TEST(Fit, ACaseThatNeedsMoreThanTheDeviceHoldsIsNotScheduled) {
  config::Experiment e = sweep_of_batches();
  const Plan all = prepare(e, 1, {});
  ASSERT_EQ(all.cases.size(), 5u);
  for (const PlannedCase& planned : all.cases) EXPECT_TRUE(planned.is_possible()) << "no memory is known";
  // A limit between the needs of micro-batch sizes two and eight. The baseline takes more than half of it.
  e.measure.memory_limit_bytes = bytes_of(all, 2) + 1;
  ASSERT_LT(bytes_of(all, 2), bytes_of(all, 3));
  ASSERT_GT(bytes_of(all, 0), bytes_of(all, 2) / 2);
  const Plan plan = prepare(e, 1, {});
  EXPECT_TRUE(plan.cases[2].is_possible());
  EXPECT_THAT(plan.cases[3].impossible, HasSubstr("MiB of memory per rank, more than "));
  EXPECT_THAT(plan.cases[3].impossible, HasSubstr("(measure.memory_limit)"));
  EXPECT_THAT(plan.cases[4].impossible, HasSubstr("more than 50 % (memory_cap) of "));
  EXPECT_EQ(plan.schedule.size(), 4u * 3);
  EXPECT_TRUE(std::ranges::none_of(plan.schedule, [](const Slot& slot) { return slot.case_index > 2; }));
}

TEST(Fit, APredictionMayAssumeMoreMemoryAndSaysSo) {
  config::Experiment e = sweep_of_batches();
  const Plan all = prepare(e, 1, {});
  e.measure.memory_limit_bytes = bytes_of(all, 3) - 1;
  e.changes.clear();
  test::add_change(e, "micro_batch_size", "8");
  e.baseline.memory_cap = 2;
  for (config::Change& change : e.changes) change.settings.memory_cap = 2;
  Plan plan = prepare(e, 1, {});
  refuse_what_does_not_fit(plan, [&](const PlannedCase&) { return configured_memory(e); });  // as a sweep asks again
  EXPECT_TRUE(plan.cases[2].is_possible());
  EXPECT_THAT(plan.cases[2].notes, ::testing::ElementsAre(HasSubstr("hypothetical: it needs ")));
  EXPECT_TRUE(plan.cases[0].notes.empty());
  e.measure.memory_limit_bytes /= 4;
  EXPECT_THAT(test::error_of([&] { prepare(e, 1, {}); }), HasSubstr("more than 200 % (memory_cap) of "));
}

TEST(Fit, ABaselineThatDoesNotFitIsAnError) {
  config::Experiment e = sweep_of_batches();
  e.measure.memory_limit_bytes = 32 << 20;
  EXPECT_THAT(test::error_of([&] { prepare(e, 1, {}); }), HasSubstr("the baseline cannot run on 1 rank: needs "));
}

// A GPU worker needs memory beyond the Program's arena.
TEST(Fit, OnAGpuTheWorkersOwnNeedsCount) {
  const double arena = 1 << 20;
  PlannedCase planned;
  planned.survey.roles = 1;
  planned.survey.peak_bytes = static_cast<std::int64_t>(arena);
  config::Experiment e;
  const auto worker_on = [&](config::BackendKind backend) {
    e.backend = backend;
    return planned_memory_bytes(e, planned) - arena;
  };
  EXPECT_EQ(worker_on(config::BackendKind::cuda), 1.5 * (1 << 30));
  EXPECT_EQ(worker_on(config::BackendKind::cpu), 30 * (1 << 20));
  EXPECT_EQ(worker_on(config::BackendKind::sim), 1.5 * (1 << 30));
  e.calibration.emplace().backend = config::BackendKind::cpu;  // measured on CPU cores
  EXPECT_EQ(worker_on(config::BackendKind::sim), 30 * (1 << 20));
}

const std::string config = test::source_dir() + "/configs/16node.yaml";

std::string refusal(const config::Experiment& e, const std::string& device) {
  return test::error_of([&] { hardware_for(e, device); });
}

TEST(HardwareFor, AConfiguredFileMustBeOfThisGpu) {
  config::Experiment e = config::load_experiment(config);
  EXPECT_FALSE(hardware_for(e, "NVIDIA H100 80GB HBM3"));
  const std::string message = refusal(e, "NVIDIA H200");
  EXPECT_THAT(message, HasSubstr("H100 SXM5 80GB (devices: NVIDIA H100 80GB HBM3), but the ranks run on NVIDIA H200"));
  e.hardware = config::hardware_named("dgx-h100");  // a machine's file is of its GPU
  EXPECT_FALSE(hardware_for(e, "NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(refusal(e, "NVIDIA A100-SXM4-80GB"), HasSubstr("DGX H100 (devices: NVIDIA H100 80GB HBM3), but"));
  e.hardware->devices.clear();  // a file that lists no devices is accepted
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

TEST(HardwareFor, WithoutOneItIsFoundByTheName) {
  config::Experiment e = config::load_experiment(config);
  e.hardware.reset();
  ASSERT_TRUE(hardware_for(e, "NVIDIA H200"));
  EXPECT_EQ(hardware_for(e, "NVIDIA H200")->name, "H200 SXM 141GB");
  EXPECT_THAT(refusal(e, "NVIDIA Z9"), HasSubstr("devices: [NVIDIA Z9]"));
  e.peak_flops = 1e12;
  EXPECT_FALSE(hardware_for(e, "NVIDIA Z9"));
  e.peak_flops = 0;
  e.without_hardware = true;
  EXPECT_FALSE(hardware_for(e, "NVIDIA H200"));
}

config::Experiment experiment_of(const std::string& variable, const std::string& workload) {
  config::Experiment e;
  e.model = {"custom", 2, 64, 4, 256, 32};
  e.baseline.workload = workload;
  e.baseline.global_batch_size = 8;
  e.changes.push_back({variable, "from_model", e.baseline, "file:3:4"});
  return e;
}

std::vector<std::string> values_of(const config::Experiment& e, int ranks) {
  std::vector<std::string> values;
  for (const config::Change& c : with_model_values(e, ranks).changes) values.push_back(c.value);
  return values;
}

std::vector<std::vector<std::string>> uses_in(const config::Experiment& experiment, int ranks) {
  Plan plan;
  plan.experiment = with_model_values(experiment, ranks);
  plan.ranks = ranks;
  for (const config::Change& c : plan.experiment.changes) {
    PlannedCase planned;
    planned.name = c.variable + "=" + c.value;
    planned.settings = c.settings;
    plan.cases.push_back(planned);
  }
  name_uses(plan);
  std::vector<std::vector<std::string>> uses;
  for (const PlannedCase& planned : plan.cases) uses.push_back(planned.uses);
  return uses;
}

TEST(FromModel, SizesAreThoseOfTheStep) {
  config::Experiment e = experiment_of("message_size", "collective");
  e.baseline.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  e.baseline.collective_over = config::CollectiveOver::tensor;
  const auto tensor = values_of(e, 8);
  EXPECT_NE(std::ranges::find(tensor, std::string("8 KiB")), tensor.end());  // 32 rows * 64 * 4 B
  EXPECT_TRUE(std::ranges::any_of(
      uses_in(e, 8), [](const auto& u) { return std::ranges::find(u, "projection, forward") != u.end(); }));
  e.baseline.collective = config::CollectiveKind::send_recv;
  e.baseline.collective_over = config::CollectiveOver::pipeline;
  EXPECT_EQ(values_of(e, 8), std::vector<std::string>{"8 KiB"});
  e.baseline.collective = config::CollectiveKind::all_to_all;
  EXPECT_THAT(test::error_of([&] { values_of(e, 8); }),
              AllOf(HasSubstr("file:3:4: from_model: the model's step on this layout has no all_to_all"),
                    HasSubstr("send_recv over pipeline")));
}

// Sequence parallelism gathers and scatters a residual stream of 32 rows * 64 * 4 B. The sharded optimizer gathers and
// scatters all parameters in one bucket.
TEST(FromModel, GatheringAndScatteringAreThereToo) {
  using Kind = config::CollectiveKind;
  config::Experiment e = experiment_of("message_size", "collective");
  e.baseline.layout = {{program::Axis::tensor, 2}};
  e.baseline.sequence_parallel = true;
  e.baseline.sharding = config::Sharding::optimizer;
  const auto sizes = [&](Kind kind, config::CollectiveOver over) {
    e.baseline.collective = kind;
    e.baseline.collective_over = over;
    return values_of(e, 4);
  };
  for (const auto kind : {Kind::all_gather, Kind::reduce_scatter}) {
    EXPECT_EQ(sizes(kind, config::CollectiveOver::tensor), std::vector<std::string>{"8 KiB"});
    EXPECT_EQ(sizes(kind, config::CollectiveOver::data).size(), 1u);
  }
  EXPECT_EQ(sizes(Kind::all_gather, config::CollectiveOver::data),
            sizes(Kind::reduce_scatter, config::CollectiveOver::data));
  e.baseline.collective = Kind::all_gather;
  e.baseline.collective_over = config::CollectiveOver::tensor;
  const auto uses = uses_in(e, 4);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_THAT(uses.front(), ::testing::Contains("norm1, forward"));
  EXPECT_THAT(test::error_of([&] { sizes(Kind::all_to_all, config::CollectiveOver::data); }),
              AllOf(HasSubstr("reduce_scatter over data"), HasSubstr("all_gather over tensor")));
}

TEST(FromModel, AttentionHasTheKeyHeadsOfTheModel) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    config::Experiment e = experiment_of("attention_shape", "attention");
    e.model.kv_heads = kv_heads;
    EXPECT_EQ(values_of(e, 2), std::vector<std::string>{fmt::format(
                                   "{{batch: 1, heads: 4, kv_heads: {}, head_dim: 16, sequence: 32}}", kv_heads)});
  }
}

using Uses = std::vector<std::string>;

TEST(FromModel, ProductsAreThoseOfTheStepAndNamedByWhatTheyAre) {
  config::Experiment e = experiment_of("gemm", "gemm");
  const auto gemms = values_of(e, 2);
  // qkv forward: [32, 64] x [64, 192]. qkv, projection, fc1, fc2 and head each have two backward products as well.
  EXPECT_NE(std::ranges::find(gemms, std::string("{m: 32, n: 192, k: 64, transpose: b}")), gemms.end());
  EXPECT_GE(gemms.size(), 10u);
  ASSERT_EQ(e.model.vocab, 4 * e.model.hidden);  // the head is as wide as the MLP
  EXPECT_EQ(std::ranges::count(uses_in(e, 2), Uses{"fc1, forward", "head, forward"}), 1);
  e.model.vocab = 320;
  const auto uses = uses_in(e, 2);
  for (const Uses& one : {Uses{"qkv, forward"}, Uses{"fc1, forward"}, Uses{"qkv weight gradient"},
                          Uses{"head weight gradient"}, Uses{"fc2 input gradient"}}) {
    EXPECT_EQ(std::ranges::count(uses, one), 1) << one.front();
  }
  EXPECT_EQ(std::ranges::count(uses, Uses{}), 0);
}

// A size may be given although the model cannot run on these ranks, or without any model.
TEST(FromModel, NothingIsNamedWithoutAStep) {
  config::Experiment e = experiment_of("gemm", "gemm");
  config::Change given{"gemm", "", e.baseline};
  given.settings.gemm = {32, 192, 64, false, true};
  e.changes = {given};
  EXPECT_EQ(uses_in(e, 2), std::vector<Uses>{Uses{"qkv, forward"}});
  e.baseline.layout = {{program::Axis::tensor, 8}, {program::Axis::pipeline, 1}};  // four heads
  EXPECT_EQ(uses_in(e, 8), std::vector<Uses>{Uses{}});
  e.baseline.layout = {};
  e.model = {};
  EXPECT_EQ(uses_in(e, 2), std::vector<Uses>{Uses{}});
}

config::Settings with(const std::map<std::string, std::string>& nccl) {
  config::Settings s;
  for (const auto& [name, value] : nccl) config::find_variable(name)->parse(s, value);
  return s;
}

config::Hardware of_capability(int compute_capability) {
  config::Hardware h;
  h.name = "Card";
  h.compute_capability = compute_capability;
  return h;
}

TEST(WhyImpossible, NvlsNeedsHopper) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"nccl_algo", "AllReduce:NVLSTree"}, {"nccl_nvls", "1"}}) {
    const config::Settings s = with({{name, value}});
    EXPECT_THAT(why_impossible(s, of_capability(80)), HasSubstr("Card (compute capability 8.0)")) << name;
    EXPECT_EQ(why_impossible(s, of_capability(90)), "") << name;
    EXPECT_EQ(why_impossible(s, of_capability(0)), "") << name << ": the file does not say";
    EXPECT_EQ(why_impossible(s, std::nullopt), "") << name;
  }
  EXPECT_NE(why_impossible(with({{"nccl_algo", "Ring;AllReduce:Tree,NVLS"}}), of_capability(89)), "");
  EXPECT_EQ(why_impossible(with({{"nccl_algo", "^NVLS,NVLSTree"}}), of_capability(80)), "");
  EXPECT_EQ(why_impossible(with({{"nccl_algo", "Ring;AllReduce:^NVLS"}, {"nccl_nvls", "2"}}), of_capability(80)), "");
}

TEST(WhyImpossible, ShardsOfANodeNeedNodesThatAreAlike) {
  const config::Model model{"m", 2, 64, 4, 256, 32};
  config::Settings s;
  s.layout = {{program::Axis::tensor, 2}};
  s.sharding = config::Sharding::parameters;
  s.sharding_group = config::ShardingGroup::node;
  const auto on = [&](int ranks_of_node) {
    return divide_ranks(model, s, 16, machine::Topology::node_by_node(16, ranks_of_node));
  };
  EXPECT_EQ(on(8).why_impossible, "");
  EXPECT_EQ(on(8).layout.replicas_of_node, 4);
  EXPECT_EQ(on(16).layout.replicas_of_node, 8);
  EXPECT_THAT(on(12).why_impossible, HasSubstr("not every node has as many of the 8 replicas"));
  EXPECT_THAT(on(2).why_impossible, HasSubstr("is on a node of its own"));
  EXPECT_THAT(divide_ranks(model, s, 16).why_impossible, HasSubstr("not known"));
  s.ranks = 8;  // the first node only
  EXPECT_EQ(on(8).layout.replicas_of_node, 4);
}

TEST(WhyImpossible, PrecisionsNeedTheirTensorCores) {
  config::Settings s;
  EXPECT_EQ(why_impossible(s, of_capability(70)), "");
  s.precision = config::Precision::bf16;
  EXPECT_THAT(why_impossible(s, of_capability(70)), HasSubstr("precision bf16"));
  EXPECT_EQ(why_impossible(s, of_capability(80)), "");
  s.precision = config::Precision::tf32;
  EXPECT_THAT(why_impossible(s, of_capability(75)), HasSubstr("precision tf32"));
  EXPECT_EQ(why_impossible(s, of_capability(86)), "");  // an unknown peak is not an error
}

TEST(WhyImpossible, SchedulesNeedStagesAndChunksTheirSchedule) {
  const auto why = [](int stages, const char* schedule, const char* chunks = "auto") {
    config::Settings s;
    s.layout = {{program::Axis::pipeline, stages}};
    config::find_variable("pipeline_schedule")->parse(s, schedule);
    config::find_variable("virtual_pipeline")->parse(s, chunks);
    return why_impossible(s, std::nullopt);
  };
  for (const char* schedule : {"1f1b", "gpipe"}) EXPECT_EQ(why(1, schedule), "");
  EXPECT_EQ(why(1, "interleaved"),
            "pipeline_schedule interleaved needs two stages or more; change pipeline_parallel (layout) with it");
  EXPECT_EQ(why(2, "interleaved"), "");
  EXPECT_EQ(why(2, "interleaved", "3"), "");
  for (const char* schedule : {"1f1b", "gpipe"}) {
    EXPECT_EQ(why(2, schedule, "3"), fmt::format("virtual_pipeline 3 needs pipeline_schedule interleaved, not {}; "
                                                 "change both together (combine)",
                                                 schedule));
  }
}

}  // namespace
}  // namespace harness::plan
