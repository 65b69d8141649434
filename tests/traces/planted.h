#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/profiled_step.h"
#include "base/text.h"
#include "explain/diagnosed.h"
#include "job/sim/simulated_job.h"
#include "support/temporary_folder.h"

namespace harness::test {

/// What delays a GPU from the host's side, the same on all ranks.
struct Host {
  double before_kernels_us = 0;  // each computation is launched so long after the one before it has ended
  double loading_us = 0;         // before each step
};

/// The simulated step of a job with faults of its cluster, with the timeline of every rank.
inline store::Result simulated(const Job& job, const config::Faults& faults) {
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

/// Four steps of it, as the PyTorch profiler writes them: a file for each rank.
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
    const std::string group = group_of_(row);
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

// The clock runs on by what each delay adds, at the same moments on all ranks.
inline std::string Profile::of_rank(int rank) const {
  constexpr int steps = 4;
  std::vector<double> delays_us;  // starts of the first rank's computations: the moments after which all are later
  double length_us = 0;
  int first = -1;
  for (const analysis::DrawnInterval& x : step_.intervals) {
    if (first < 0) first = x.row->rank;
    length_us = std::max(length_us, 1e6 * x.end_s);
    if (x.row->rank == first && !analysis::is_communication(x.row->kind)) delays_us.push_back(1e6 * x.start_s);
  }
  const double added_us = host_.loading_us + host_.before_kernels_us * static_cast<double>(delays_us.size());
  std::string text = fmt::format(
      "{{\"schemaVersion\": 1, \"distributedInfo\": {{\"rank\": {}, \"world_size\": {}}},\n\"traceEvents\": [\n", rank,
      layout_.ranks());
  int correlation = 0;
  std::map<std::string, int> streams{{"compute", 7}};
  for (int s = 0; s < steps; ++s) {
    const double begin_us = 1e6 + s * (length_us + added_us);
    const auto host = [&](const char* category, const std::string& name, double from, double to, int id) {
      text += fmt::format(
          R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {:.3f}, "dur": {:.3f}, "args": {{"correlation": {}}}}},)"
          "\n",
          category, name, from, to - from, id);
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
      text += fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
          R"("args": {{"device": 0, "stream": {}, "correlation": {}{}}}}},)"
          "\n",
          kernel_name(x.row->kind), stream, start_us, duration_us, stream, correlation,
          analysis::is_communication(x.row->kind) ? arguments_of(*x.row) : "");
    }
  }
  return text + "{\"ph\": \"M\", \"name\": \"end\"}\n]}\n";
}

}  // namespace harness::test
