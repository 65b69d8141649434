// Diagnoses known causes: a step is simulated with a fault, and the diagnosis gets the result without any mention of
// the fault.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "diagnosed.h"

namespace harness::explain {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

analysis::Diagnosis diagnosis_of(const store::Result& result) {
  const analysis::Explanation found = explain(result);
  EXPECT_EQ(found.why_none, "");
  return found.diagnosis.value_or(analysis::Diagnosis());
}

struct Scenario {
  const char* name;
  test::Job job;
  config::Faults faults;
  const char* cause;
  const char* words;  // must appear in its description
};

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

class NamesTheCause : public ::testing::TestWithParam<Scenario> {};

TEST_P(NamesTheCause, First) {
  const Scenario& s = GetParam();
  const analysis::Diagnosis found = diagnosis_of(test::measured(s.job, s.faults));
  ASSERT_THAT(found.causes, SizeIs(1));
  const analysis::Cause& cause = found.causes.front();
  EXPECT_EQ(cause.fault, s.cause) << cause.words;
  EXPECT_THAT(cause.words, HasSubstr(s.words));
  EXPECT_GT(found.measured_s, 1.05 * found.healthy_s);
  EXPECT_NEAR(found.explained_s, found.measured_s, 0.01 * found.measured_s);
  EXPECT_GT(cause.explains, 0.95);
  EXPECT_NEAR(found.compute_factor, 1, 0.01);
}

const test::Job two_nodes, four_nodes{.nodes = 4}, sixteen_nodes{.nodes = 16, .sequences = 1},
    stages{.nodes = 4, .layout = "tensor_parallel: 8, pipeline_parallel: 2", .sequences = 8},
    ampere{.nodes = 4, .layout = "tensor_parallel: 4", .hardware = "dgx-a100"},
    replicas{.nodes = 4, .layout = "tensor_parallel: 1", .overlaps = true};

// If every group spans all nodes, the step cannot tell which node has the slow link.
INSTANTIATE_TEST_SUITE_P(
    Scenarios, NamesTheCause,
    ::testing::Values(
        Scenario{"slow_gpu_70", two_nodes, slow_gpu(11, 0.7), "slow_gpu", "rank 11 (node1) computes at 70 %"},
        Scenario{"slow_gpu_75_of_stages", stages, slow_gpu(17, 0.75), "slow_gpu", "rank 17 (node2) computes at 75 %"},
        Scenario{"slow_gpu_that_is_profiled", sixteen_nodes, slow_gpu(0, 0.5), "slow_gpu",
                 "rank 0 (node0) computes at 50 %"},
        Scenario{"slow_link_50", sixteen_nodes, slow_link(5, 0.5), "slow_link", "nodes 0 to 15 has 50 %"},
        Scenario{"slow_link_25_of_stages", stages, slow_link(3, 0.25), "slow_link", "node 3 (node3) has 25 %"},
        Scenario{"pcie_of_a_node", sixteen_nodes, pcie(-1, 4, 0.25), "pcie_downgraded", "nodes 0 to 15 carry 25 %"},
        Scenario{"pcie_of_a_rank", four_nodes, pcie(13, -1, 0.25), "pcie_downgraded", "ranks 5, 13, 21, 29 carry 25 %"},
        Scenario{"pcie_of_a_rank_of_stages", stages, pcie(30, -1, 0.125), "pcie_downgraded",
                 "rank 30 (node3) carry 12 %"},
        Scenario{"socket_fallback", sixteen_nodes, socket(4e9), "socket_fallback", "4 GB/s a node"},
        Scenario{"socket_fallback_of_ampere", ampere, socket(1.5e9), "socket_fallback", "1.5 GB/s a node"},
        Scenario{"no_gpudirect", sixteen_nodes, everywhere(&config::Faults::no_gpudirect), "no_gpudirect", "GPUDirect"},
        Scenario{"acs_on", sixteen_nodes, everywhere(&config::Faults::acs_on), "acs_on", "access control"},
        Scenario{"tensor_across_nodes", four_nodes, everywhere(&config::Faults::tensor_across_nodes),
                 "tensor_across_nodes", "one by one"}),
    [](const auto& scenario) { return std::string(scenario.param.name); });

TEST(Diagnosis, AHealthyStepHasNoCause) {
  for (const test::Job& job : {two_nodes, sixteen_nodes, stages, ampere, replicas}) {
    const analysis::Diagnosis found = diagnosis_of(test::measured(job, {}));
    EXPECT_THAT(found.causes, IsEmpty()) << job.layout;
    EXPECT_EQ(found.compute_factor, 1);
    EXPECT_DOUBLE_EQ(found.measured_s, found.healthy_s);
  }
}

TEST(Diagnosis, FindsAFaultBesideWhatAllRanksShare) {
  const analysis::Diagnosis found = diagnosis_of(test::measured(two_nodes, slow_gpu(3, 0.6), 1.2));
  ASSERT_THAT(found.causes, SizeIs(1));
  EXPECT_EQ(found.causes.front().fault, "slow_gpu");
  EXPECT_THAT(found.causes.front().words, HasSubstr("rank 3 (node0) computes at 60 %"));
  EXPECT_NEAR(found.compute_factor, 1.2, 0.03);
}

TEST(Diagnosis, NamesOneFaultAfterTheOther) {
  config::Faults faults = slow_gpu(9, 0.5);
  faults.no_gpudirect = true;
  const analysis::Diagnosis found = diagnosis_of(test::measured(sixteen_nodes, faults));
  ASSERT_THAT(found.causes, SizeIs(2));
  std::set<std::string> names{found.causes[0].fault, found.causes[1].fault};
  EXPECT_EQ(names, (std::set<std::string>{"slow_gpu", "no_gpudirect"}));
  EXPECT_NEAR(found.explained_s, found.measured_s, 0.01 * found.measured_s);
}

// If several faults mask each other, as in configs/scenarios/16node-as-found.yaml, the dominant one is named.
TEST(Diagnosis, NamesTheFaultThatHidesOthers) {
  config::Faults faults = slow_gpu(9, 0.7);
  faults.socket_bytes_per_s = 4e9;
  faults.no_gpudirect = faults.acs_on = true;
  faults.slow_links = {{5, 0.5}};
  const analysis::Diagnosis found = diagnosis_of(test::measured(sixteen_nodes, faults));
  ASSERT_FALSE(found.causes.empty());
  EXPECT_EQ(found.causes.front().fault, "socket_fallback");
}

// Two faults with the same symptoms are both named, with the checks that tell them apart. A finding of doctor decides.
TEST(Diagnosis, DoctorBreaksATie) {
  store::Result result = test::measured(sixteen_nodes, slow_link(5, 0.5));
  const analysis::Diagnosis open = diagnosis_of(result);
  ASSERT_THAT(open.causes, SizeIs(1));
  EXPECT_EQ(open.causes.front().fault, "slow_link");
  ASSERT_FALSE(open.causes.front().or_else.empty());
  EXPECT_EQ(open.causes.front().or_else.front().first, "pcie_downgraded");
  EXPECT_THAT(open.causes.front().checks, ::testing::ElementsAre("load.pairs", "pcie.width"));
  store::ResultFinding width;
  width.verdict = "fail";
  width.check = "pcie.width";
  result.doctor.findings.push_back(width);
  const analysis::Diagnosis told = diagnosis_of(result);
  ASSERT_THAT(told.causes, SizeIs(1));
  EXPECT_EQ(told.causes.front().fault, "pcie_downgraded");
  EXPECT_EQ(told.causes.front().confirmed_by, "pcie.width");
}

// An excess below the error of predictions has no cause.
TEST(Diagnosis, ASmallExcessHasNoCause) {
  const analysis::Diagnosis found = diagnosis_of(test::measured(two_nodes, slow_link(1, 0.9)));
  EXPECT_GT(found.measured_s, found.healthy_s);
  EXPECT_THAT(found.causes, IsEmpty());
}

TEST(Explain, SaysWhyThereIsNothingToHoldItAgainst) {
  const store::Result measured = test::measured(two_nodes, {});
  const auto why = [&](const std::string& backend, const std::string& hardware) {
    store::Result result = measured;
    result.backend = backend;
    result.config_text = replaced_all(result.config_text, "hardware: h100-sxm", hardware);
    return explain(result).why_none;
  };
  EXPECT_EQ(why("cuda", "hardware: h100-sxm"), "");
  EXPECT_THAT(why("cuda", "hardware: none"), HasSubstr("name them in the configuration"));
  EXPECT_THAT(why("cuda", ""), HasSubstr("name them in the configuration"));
  EXPECT_THAT(why("cuda", "hardware: h10"), HasSubstr("cannot be read again"));
  EXPECT_THAT(why("cpu", "hardware: h100-sxm"), HasSubstr("ranks of the backend cpu are none"));
}

// A second case with the baseline's profiled step and a batch size that cannot be predicted.
store::Result with_a_case_beside_the_baseline() {
  store::Result result = test::measured(two_nodes, {});
  result.cases.push_back(result.cases[0]);
  result.cases[1].name = "global_batch_size=1000000";
  const auto batch = std::ranges::find(result.variables, "global_batch_size") - result.variables.begin();
  result.cases[1].settings[batch] = "1000000";
  const auto again = [](auto& rows) {
    for (auto row : std::vector(rows)) {
      row.case_index = 1;
      rows.push_back(row);
    }
  };
  again(result.timeline);
  again(result.splits);
  again(result.totals);
  again(result.operations);
  again(result.roles);
  return result;
}

TEST(Explain, SaysWhyACaseHasNoPrediction) {
  store::Result result = with_a_case_beside_the_baseline();
  const analysis::Explanation found = explain(result);
  EXPECT_EQ(found.why_none, "");
  EXPECT_THAT(found.cases, SizeIs(1));
  ASSERT_THAT(found.not_predicted, SizeIs(1));
  EXPECT_EQ(found.not_predicted[0].case_index, 1);
  EXPECT_THAT(found.not_predicted[0].why, HasSubstr("is more than the"));
  EXPECT_TRUE(found.diagnosis);
  EXPECT_EQ(found.why_no_diagnosis, "");
}

TEST(Explain, SaysWhyThereIsNoDiagnosis) {
  store::Result result = with_a_case_beside_the_baseline();
  std::swap(result.cases[0].settings, result.cases[1].settings);
  analysis::Explanation found = explain(result);
  EXPECT_THAT(found.cases, SizeIs(1));
  ASSERT_THAT(found.not_predicted, SizeIs(1));
  EXPECT_EQ(found.not_predicted[0].case_index, 0);
  EXPECT_FALSE(found.diagnosis);
  EXPECT_EQ(found.why_no_diagnosis, "the baseline has no prediction");
  std::erase_if(result.timeline, [](const auto& row) { return row.case_index == 0; });
  found = explain(result);
  EXPECT_THAT(found.cases, SizeIs(1));
  EXPECT_FALSE(found.diagnosis);
  EXPECT_EQ(found.why_no_diagnosis, "the baseline has no profiled step");
  result.timeline.clear();
  EXPECT_EQ(explain(result).why_none, "no case has a profiled step");
}

TEST(Explain, FindsTheHardwareByTheNameOfTheGpu) {
  store::Result result = test::measured(two_nodes, {});
  result.config_text = replaced_all(result.config_text, "hardware: h100-sxm", "");
  result.config_text = replaced_all(result.config_text, "backend: sim", "backend: cuda");
  for (store::ResultRank& row : result.rank_table) row.device = "NVIDIA H100 80GB HBM3";
  const analysis::Explanation found = explain(result);
  EXPECT_EQ(found.why_none, "");
  EXPECT_EQ(found.hardware, "H100 SXM5 80GB");
}

// The configuration of a prediction lists its faults, but the diagnosis does not read them.
TEST(Explain, DoesNotReadTheFaultsOfTheConfiguration) {
  store::Result result = test::measured(sixteen_nodes, everywhere(&config::Faults::acs_on));
  ASSERT_EQ(result.config_text.find("faults"), std::string::npos);
  EXPECT_EQ(diagnosis_of(result).causes.at(0).fault, "acs_on");
  result.backend = "sim";
  result.config_text += "faults: {no_gpudirect: true, slow_gpu: {rank: 3, speed: 50 %}}\n";
  const analysis::Diagnosis found = diagnosis_of(result);
  ASSERT_THAT(found.causes, SizeIs(1));
  EXPECT_EQ(found.causes.front().fault, "acs_on");
}

// The file records the placement of ranks: ranks placed node by node were not dealt one by one, whatever the step looks
// like.
TEST(Diagnosis, RanksThatStandNodeByNodeWereNotDealt) {
  store::Result result = test::measured(four_nodes, everywhere(&config::Faults::tensor_across_nodes));
  ASSERT_EQ(diagnosis_of(result).causes.at(0).fault, "tensor_across_nodes");
  const auto is_named = [&] {
    const analysis::Diagnosis found = diagnosis_of(result);
    EXPECT_GT(found.measured_s, (1 + found.margin) * found.healthy_s);
    return std::ranges::any_of(found.causes, [](const analysis::Cause& cause) {
      return cause.fault == "tensor_across_nodes" ||
             std::ranges::any_of(cause.or_else, [](const auto& other) { return other.first == "tensor_across_nodes"; });
    });
  };
  // Node numbers are arbitrary.
  for (store::ResultRank& row : result.rank_table)
    row.node = four_nodes.nodes - 1 - row.rank / four_nodes.ranks_of_node;
  EXPECT_FALSE(is_named());
  // A case's placement may differ from the job's.
  for (store::ResultRole& row : result.roles) row.node = row.rank % four_nodes.nodes;
  EXPECT_TRUE(is_named());
}

// The hardware is slightly slower than its file promises.
TEST(Diagnosis, BearsACalibrationThatIsALittleOff) {
  const auto found = [](const config::Faults& faults) {
    store::Result result = test::unmeasured(four_nodes, test::experiment_of(four_nodes));
    Reference reference = reference_of(result);
    reference.experiment.calibration->network_share *= 0.9;
    reference.experiment.calibration->product_share *= 0.88;
    test::place(result, faults);
    test::add_step(result, CaseModel(reference, result, 0).predict(faults));
    return diagnosis_of(result);
  };
  EXPECT_THAT(found({}).causes, IsEmpty());
  EXPECT_EQ(found(slow_gpu(3, 0.6)).causes.at(0).fault, "slow_gpu");
  EXPECT_EQ(found(socket(4e9)).causes.at(0).fault, "socket_fallback");
  EXPECT_EQ(found(everywhere(&config::Faults::tensor_across_nodes)).causes.at(0).fault, "tensor_across_nodes");
}

}  // namespace
}  // namespace harness::explain
