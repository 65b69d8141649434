// Known causes, planted in traces that are made from simulated steps: each is named, and nothing of a healthy step is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs.h"
#include "planted.h"
#include "report/page/page.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Plant {
  const char* name;
  test::Job job;
  config::Faults faults = {};
  test::Host host = {};
  const char* first_problem = "";  // "": none
  const char* cause = "";          // beside the prediction of the job, with overlap; "": none
};

void PrintTo(const Plant& plant, std::ostream* out) {
  *out << plant.name;
}

Report traced(const Plant& plant) {
  const test::TemporaryFolder folder;
  const store::Result result = test::simulated(plant.job, plant.faults);
  const program::Layout layout =
      plan::divide_ranks(result.model, test::experiment_of(plant.job).baseline, plant.job.ranks()).layout;
  return read_job(test::Profile(result, layout, plant.host).write(folder));
}

class Planted : public ::testing::TestWithParam<Plant> {};

void expect_named_first(const Report& report, const std::string& wanted) {
  const std::vector<std::string> problems = problems_of(report);
  if (wanted.empty()) {
    EXPECT_THAT(problems, IsEmpty());
    return;
  }
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front(), HasSubstr(wanted)) << join(problems, "\n");
  for (std::size_t i = 1; i < problems.size(); ++i) {
    for (const char* other : {"is late", "as over TCP", "waits for data", "launches too slowly", "run alone"})
      EXPECT_THAT(problems[i], ::testing::Not(HasSubstr(other)));
  }
}

void expect_named_beside(const Beside& beside, const std::string& wanted) {
  double measured_s = 0, predicted_s = 0;
  for (const PartBeside& part : beside.parts) {
    measured_s += part.measured_s;
    predicted_s += part.predicted_s;
  }
  EXPECT_NEAR(measured_s, beside.measured_s, 1e-3 * beside.measured_s);
  EXPECT_NEAR(predicted_s, beside.predicted_s, 1e-3 * beside.predicted_s);
  if (wanted.empty()) {
    EXPECT_THAT(beside.causes, IsEmpty()) << join(beside.causes, "\n");
    EXPECT_NEAR(beside.measured_s, beside.predicted_s, 0.01 * beside.predicted_s);
    return;
  }
  ASSERT_FALSE(beside.causes.empty());
  EXPECT_THAT(beside.causes.front(), HasSubstr(wanted)) << join(beside.causes, "\n");
}

TEST_P(Planted, IsNamedFirstAndBesideThePrediction) {
  const Plant& plant = GetParam();
  const Report report = traced(plant);
  ASSERT_EQ(report.gpus.size(), static_cast<std::size_t>(plant.job.ranks()));
  expect_named_first(report, plant.first_problem);
  test::Job job = plant.job;
  job.overlaps = true;
  expect_named_beside(beside_prediction(report, test::experiment_of(job)), plant.cause);
}

const test::Job replicas{.layout = "tensor_parallel: 1", .sequences = 16, .overlaps = true};
const test::Job tensor{.nodes = 1, .sequences = 8};
test::Job without_overlap() {
  test::Job job = replicas;
  job.sequences = 8;
  job.overlaps = false;
  return job;
}
config::Faults slow_gpu(int rank) {
  config::Faults faults;
  faults.slow_gpus = {{rank, 0.8}};
  return faults;
}
config::Faults socket() {
  config::Faults faults;
  faults.socket_bytes_per_s = 2e9;
  return faults;
}

// The page names the late rank, draws every rank of eight, and holds the parts of the step with their sum.
TEST(Page, ShowsTheStepItsRanksAndWhoIsLate) {
  const Plant plant{"slow rank", tensor, slow_gpu(5)};
  const Report report = traced(plant);
  const report::Document document = make_report({report});
  ASSERT_FALSE(document.notices.empty());
  EXPECT_THAT(document.notices.front().text, HasSubstr("rank 5 is late"));
  std::map<std::string, const report::Figure*> figures;
  for (const report::Section& section : document.sections) {
    for (const report::Piece& piece : section.pieces) {
      if (const auto* figure = std::get_if<report::Figure>(&piece)) figures[figure->id] = figure;
    }
  }
  ASSERT_TRUE(figures.contains("parts") && figures.contains("timeline") && figures.contains("ranks"));
  EXPECT_EQ(figures["ranks"]->numbers.rows.size(), 8u);
  double sum = 0;
  for (const auto& row : figures["parts"]->numbers.rows) sum += std::stod(row[2].text);
  EXPECT_NEAR(sum, 100, 0.5);
  EXPECT_THAT(figures["timeline"]->caption, HasSubstr("share a clock"));
  std::set<std::string> ranks;
  for (const auto& row : figures["timeline"]->numbers.rows) ranks.insert(row[0].text);
  EXPECT_EQ(ranks.size(), 8u);
  const std::string page = page::page(document);
  EXPECT_LT(page.size(), 300'000u);
  EXPECT_THAT(page, ::testing::Not(HasSubstr("<script")));
}

std::string name_of_plant(const ::testing::TestParamInfo<Plant>& plant) {
  return replaced(plant.param.name, {{' ', "_"}, {'-', "_"}});
}

INSTANTIATE_TEST_SUITE_P(
    Causes, Planted,
    ::testing::Values(
        Plant{"healthy", replicas},
        Plant{"slow rank", replicas, slow_gpu(3), {}, "rank 3 is late", "the GPU of rank 3"},
        Plant{"slow rank among tensor ranks", tensor, slow_gpu(5), {}, "rank 5 is late", "the GPU of rank 5"},
        Plant{"socket link", replicas, socket(), {}, "as over TCP", "NCCL sends over TCP"},
        Plant{"no overlap", without_overlap(), {}, {}, "run alone", "overlap is off"},
        Plant{"launch-bound", replicas, {}, {.before_kernels_us = 400}, "launches too slowly", "idle"},
        Plant{"slow loader", replicas, {}, {.loading_us = 2e5}, "waits for data", "idle"}),
    name_of_plant);

}  // namespace
}  // namespace harness::traces
