// Known causes planted in traces of simulated steps: each is named, and a healthy step has none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "base/text.h"
#include "explain/diagnosed.h"
#include "job/sim/simulated_job.h"
#include "jobs.h"
#include "report/page/page.h"
#include "support/files.h"
#include "traces/answer.h"

namespace harness::test {
namespace {

/// Delays of a GPU by its host, equal on all ranks.
struct Host {
  double before_kernels_us = 0;  // delay of each computation's launch after the previous one has ended
  double loading_us = 0;         // before each step
};

/// Simulates the step of a job with faults of its cluster. Returns it with the timeline of every rank.
store::Result simulated(const Job& job, const config::Faults& faults) {
  store::Result result = unmeasured(job, experiment_of(job));
  const explain::Reference reference = explain::reference_of(result);
  const explain::CaseModel model(reference, result, 0);
  config::Experiment e = reference.experiment;
  e.faults = faults;
  const sim::Simulation simulation(model.set(), model.settings(), e, sim::network_of(e, reference.node_of));
  for (std::int32_t rank = 0; rank < job.ranks(); ++rank) {
    const program::Coordinates at = model.set().layout.coordinates(rank);
    result.roles.push_back({0, rank, model.set().role_of(at), at});
  }
  program::LeastTimes no_limits(simulation.set(), reference.node_of, {});
  sweep::add_timeline(result, 0, simulation.set(), simjob::profiled_samples(simulation, config::Timelines::all),
                      no_limits);
  return result;
}

/// Four such steps as the PyTorch profiler writes them: one file per rank.
class Profile {
 public:
  Profile(const store::Result& result, const program::Layout& layout, const Host& host)
      : host_(host), layout_(layout), group_of_(result, 0), step_(analysis::drawn_step(result, 0)) {
    for (const store::ResultOperations& row : result.operations)
      bytes_[key_of(row)] = row.bytes / static_cast<double>(std::max<std::int64_t>(1, row.operations));
  }

  std::vector<std::string> write(const TemporaryFolder& folder) const {
    std::vector<std::string> paths;
    for (int rank = 0; rank < layout_.ranks(); ++rank)
      paths.push_back(folder.write(fmt::format("rank{}.json", rank), of_rank(rank)));
    return paths;
  }

 private:
  template <class Row>
  static std::string key_of(const Row& row) {
    return fmt::format("{} {} {} {} {}", row.role, row.kind, row.stream, row.phase, row.what);
  }
  static std::string kernel_name(const std::string& kind) {
    if (kind == "matmul") return "nvjet_tst_192x192_64x4_2x1_v_bz_TNT";
    if (kind.starts_with("attention")) return "void flash_fwd_kernel<Flash_fwd_kernel_traits>";
    if (kind.starts_with("adam")) return "void multi_tensor_apply_kernel<AdamFunctorMaster>";
    if (kind == "all_reduce") return "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    if (kind == "all_gather") return "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    if (kind == "reduce_scatter") return "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL";
    if (analysis::is_communication(kind)) return "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    return "void at::native::vectorized_elementwise_kernel<4, at::native::" + kind + ">";
  }
  std::string arguments_of(const store::ResultInterval& row) const {
    const std::string group(group_of_(row));
    std::string description = "default_pg";
    int ranks = layout_.ranks();
    const auto along = [&](const char* name, program::Axis axis) {
      description = name;
      ranks = layout_[axis];
    };
    if (group == "tensor") along("TENSOR_MODEL_PARALLEL_GROUP", program::Axis::tensor);
    if (group == "data") along("DATA_PARALLEL_GROUP", program::Axis::data);
    if (group == "pipeline") along("PIPELINE_MODEL_PARALLEL_GROUP", program::Axis::pipeline);
    const auto bytes = bytes_.find(key_of(row));
    return fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "BFloat16", "Group size": {}, )"
        R"("Process Group Description": "{}")",
        replaced(row.kind, {{'_', ""}}), static_cast<std::int64_t>(bytes->second / 2),
        static_cast<std::int64_t>(bytes->second / 2), ranks, description);
  }

  std::string of_rank(int rank) const;

  Host host_;
  program::Layout layout_;
  analysis::GroupsOf group_of_;
  analysis::DrawnStep step_;
  std::map<std::string, double> bytes_;
};

// Each delay shifts all later events, at the same moments on all ranks.
std::string Profile::of_rank(int rank) const {
  constexpr int steps = 4;
  std::vector<double> delays_us;  // starts of the first rank's computations: each delays everything after it
  double length_us = 0;
  int first = -1;
  for (const analysis::DrawnInterval& x : step_.intervals) {
    if (first < 0) first = x.row->rank;
    length_us = std::max(length_us, 1e6 * x.end_s);
    if (x.row->rank == first && !analysis::is_communication(x.row->kind)) delays_us.push_back(1e6 * x.start_s);
  }
  const double added_us = host_.loading_us + host_.before_kernels_us * static_cast<double>(delays_us.size());
  const auto us = [](double time) { return fmt::format("{:.3f}", time); };
  std::string text;
  int correlation = 0;
  std::map<std::string, int> streams{{"compute", 7}};
  for (int s = 0; s < steps; ++s) {
    const double begin_us = 1e6 + s * (length_us + added_us);
    const auto host = [&](const char* category, const std::string& name, double from, double to, int id) {
      text += traces::event(category, name, us(from), us(to - from), fmt::format("\"correlation\": {}", id)) + ",\n";
    };
    host("user_annotation", fmt::format("ProfilerStep#{}", s), begin_us - 400, begin_us + length_us + added_us - 401,
         0);
    if (host_.loading_us > 0)
      host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin_us - 390,
           begin_us + host_.loading_us - 30, 0);
    for (const analysis::DrawnInterval& x : step_.intervals) {
      if (x.row->rank != rank) continue;
      const auto delays = std::ranges::upper_bound(delays_us, 1e6 * x.start_s + 1e-4) - delays_us.begin();
      const double start_us =
          begin_us + host_.loading_us + 1e6 * x.start_s + host_.before_kernels_us * static_cast<double>(delays);
      const double duration_us = 1e6 * (x.end_s - x.start_s);
      const bool directed = x.row->kind == "send" || x.row->kind == "receive";
      const std::string name = x.row->stream + (directed ? x.row->kind : "");
      const int stream = streams.emplace(name, 13 + 4 * static_cast<int>(streams.size())).first->second;
      const bool late = host_.before_kernels_us > 0 || (host_.loading_us > 0 && x.start_s * 1e6 < 400);
      const double launch_us = late ? start_us - 5 : start_us - 300;
      host("cuda_runtime", "cudaLaunchKernel", launch_us, launch_us + 3, ++correlation);
      const std::string arguments =
          fmt::format(R"("device": 0, "stream": {}, "correlation": {}{})", stream, correlation,
                      analysis::is_communication(x.row->kind) ? arguments_of(*x.row) : "");
      text += traces::kernel(us(start_us), us(duration_us), kernel_name(x.row->kind), arguments) + ",\n";
    }
  }
  return traces::trace(text + R"({"ph": "M", "name": "end"})", traces::of_rank(rank, layout_.ranks()));
}

}  // namespace
}  // namespace harness::test

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
  const char* cause = "";          // compared with the prediction of the job with overlap; "": none
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

std::map<std::string, report::Figure> figures_of(const report::Document& document) {
  std::map<std::string, report::Figure> figures;
  for (const report::Section& section : document.sections) {
    for (const report::Piece& piece : section.pieces) {
      if (const auto* figure = std::get_if<report::Figure>(&piece)) figures[figure->id] = *figure;
    }
  }
  return figures;
}

// The page names the late rank, draws all eight ranks, and shows the parts of the step with their sum.
TEST(Page, ShowsTheStepItsRanksAndWhoIsLate) {
  const Plant plant{"slow rank", tensor, slow_gpu(5)};
  const Report report = traced(plant);
  const report::Document document = make_report({report});
  ASSERT_FALSE(document.notices.empty());
  EXPECT_THAT(document.notices.front().text, HasSubstr("rank 5 is late"));
  std::map<std::string, report::Figure> figures = figures_of(document);
  ASSERT_TRUE(figures.contains("parts") && figures.contains("timeline") && figures.contains("ranks"));
  EXPECT_EQ(figures["ranks"].numbers.rows.size(), 8u);
  double sum = 0;
  for (const auto& row : figures["parts"].numbers.rows) sum += std::stod(row[2].text);
  EXPECT_NEAR(sum, 100, 0.5);
  EXPECT_THAT(figures["timeline"].caption, HasSubstr("share a clock"));
  std::set<std::string> ranks;
  for (const auto& row : figures["timeline"].numbers.rows) ranks.insert(row[0].text);
  EXPECT_EQ(ranks.size(), 8u);
  const std::string page = page::page(document);
  EXPECT_LT(page.size(), 300'000u);
  EXPECT_THAT(page, ::testing::Not(HasSubstr("<script")));
}

// Waiting that computation hides makes the bars longer than the step.
TEST(Page, DrawsAllOfTheWaiting) {
  Report report = traced({"healthy", tensor});
  const auto drawing = [&](double steps) {
    report.gpus[0].step.waits_s = steps * report.gpus[0].step.breakdown.step_s;
    return figures_of(make_report({report})).at("ranks").drawing;
  };
  EXPECT_NE(drawing(2), drawing(3));
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
