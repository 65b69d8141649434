#include "accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "config/experiment.h"
#include "machine/conditions.h"
#include "plan/plan.h"
#include "sim/simulation.h"
#include "workloads/workload.h"

namespace harness::accuracy {
namespace {

// A typical configuration. Megatron-LM pads the vocabulary to a multiple of 128 on every tensor rank; without overlap
// it reduces all gradients at once. Steps published since 2023 reduce gradients in bf16.
std::string configuration(const Row& row, std::int64_t batch) {
  const auto at = [&](const char* name) { return row.at(name); };
  const auto truth = [&](const char* name) { return at(name) == "1"; };
  const auto given = [&](const char* name) { return at(name).empty() ? "0" : at(name); };
  const std::int64_t step = 128 * std::stoll(at("tensor_parallel"));
  const std::int64_t vocab = (std::stoll(at("vocab")) + step - 1) / step * step;
  const bool overlaps = truth("overlap_grad_reduce"), interleaves = at("virtual_pipeline") != "1";
  const bool unfused = at("attention") == "unfused", old = at("family") == "megatron-2022";
  std::string text = fmt::format("backend: sim\nhardware: {}\ncalibration: {}\n", at("hardware"), at("family"));
  if (const std::string& rate = at("fabric_per_node_gbit_s"); !rate.empty())
    text += fmt::format("fabric: {{node: {} GB/s}}\n", std::stod(rate) / 8);
  text += fmt::format(
      "model: {{layers: {}, hidden: {}, heads: {}, vocab: {}, sequence: {}, kv_heads: {}, ffn: {}, activation: {}, "
      "norm: {}, positions: {}, tied_embeddings: {}, biases: {}}}\n",
      at("layers"), at("hidden"), at("heads"), vocab, at("sequence"), old ? at("heads") : given("kv_heads"),
      old ? std::to_string(4 * std::stoll(at("hidden"))) : given("ffn"), at("activation"), at("norm"), at("positions"),
      at("tied_embeddings"), at("biases"));
  text += fmt::format(
      "baseline:\n  precision: {}\n  global_batch_size: {}\n  micro_batch_size: {}\n"
      "  layout: {{tensor_parallel: {}, pipeline_parallel: {}, context_parallel: {}}}\n  recompute: {}\n"
      "  sequence_parallel: {}\n  sharding: {}\n  attention: {}\n  overlap_grad_reduce: {}\n  bucket_size: {}\n",
      at("precision"), batch, at("micro_batch_size"), at("tensor_parallel"), at("pipeline_parallel"),
      at("context_parallel"), at("recompute"), truth("sequence_parallel"), at("sharding"),
      unfused ? "unfused" : "fused", overlaps, overlaps ? "160 MiB" : "1 TiB");
  if (at("recompute_layers") != "0") text += fmt::format("  recompute_layers: {}\n", at("recompute_layers"));
  if (truth("tp_overlap")) text += "  tp_overlap: true\n";
  if (truth("embedding_as_layer")) text += "  embedding_as_layer: true\n";
  if (!old) text += "  grad_reduce_precision: bf16\n";
  if (!old && at("sharding") == "optimizer") text += "  overlap_param_gather: true\n";
  if (interleaves)
    text += fmt::format("  pipeline_schedule: interleaved\n  virtual_pipeline: {}\n", at("virtual_pipeline"));
  return text;
}

// Adapts the calibration to the software of a row.
config::Calibration as_published(config::Calibration c, const Row& row) {
  static const std::map<std::string, config::AttentionKernel> kernels{{"fa1", config::AttentionKernel::fa1},
                                                                      {"fa2", config::AttentionKernel::fa2},
                                                                      {"fa3", config::AttentionKernel::fa3},
                                                                      {"fa4", config::AttentionKernel::fa4},
                                                                      {"cudnn", config::AttentionKernel::cudnn}};
  if (const auto kernel = kernels.find(row.at("attention")); kernel != kernels.end())
    c.attention_kernel = kernel->second;
  c.product_share *= std::stod(row.at("share_of_today"));
  if (const std::string& bytes = row.at("cast_bytes"); !bytes.empty())
    c.software.cast_bytes[config::Precision::fp8] = std::stod(bytes);
  if (row.at("software") == "graphs") c.software.host_s = 0;
  if (row.at("software") == "compiled") set_eager_bytes(c, 1);
  return c;
}

config::Experiment experiment_of(const Row& row, const std::string& configs, std::int64_t batch) {
  return config::load_experiment(fmt::format("{}/{}.yaml", configs, row.at("id")), {}, configuration(row, batch));
}

// Names the setting that a column belongs to; "" for derived columns and those that are no setting.
std::string setting_of(const std::string& column) {
  constexpr std::array<const char*, 5> axes{"tensor_parallel", "pipeline_parallel", "virtual_pipeline",
                                            "context_parallel", "embedding_as_layer"};
  for (const char* axis : axes) {
    if (column == axis) return "layout";
  }
  constexpr std::array<const char*, 14> no_settings{
      "id",       "use",     "step_seconds", "group",     "ranks_per_node", "fabric_per_node_gbit_s", "date",
      "hardware", "network", "model",        "framework", "tuned",          "tokens_s_gpu",           "tflops_causal"};
  return std::ranges::find(no_settings, column) != no_settings.end() ? "" : column;
}

}  // namespace

void set_eager_bytes(config::Calibration& calibration, double bytes) {
  for (auto& [kind, cost] : calibration.software.kinds) {
    if (!kind.first.starts_with("cross_entropy")) cost.bytes = bytes;
  }
}

config::Calibration read_calibration(const std::string& family, const std::string& configs) {
  const std::string text = fmt::format(
      "backend: sim\ncalibration: {}\nmodel: {{layers: 1, hidden: 64, heads: 1, vocab: 64, sequence: 8}}\n"
      "baseline: {{precision: bf16}}\n",
      family);
  return config::load_experiment(configs + "/accuracy.yaml", {}, text).calibration.value();
}

namespace {

// Predicts the row's step with this batch size, and its largest collective, per calibration.
std::vector<sim::Prediction> steps_of(const Row& row, const std::string& configs, std::int64_t batch,
                                      std::span<const config::Calibration> calibrations) {
  config::Experiment e = experiment_of(row, configs, batch);
  const int ranks = std::stoi(row.at("gpus"));
  const auto topology = machine::Topology::node_by_node(ranks, std::stoi(row.at("ranks_per_node")));
  const plan::Division division = plan::divide_ranks(e.model, e.baseline, ranks, topology);
  if (!division.why_impossible.empty()) fail("{}: {}", row.at("id"), division.why_impossible);
  const sim::Network network = sim::network_of(e, topology.node_of);
  const program::ProgramSet set = workloads::build_programs(e.model, e.baseline, division.layout);
  std::vector<sim::Prediction> steps;
  for (const config::Calibration& calibration : calibrations) {
    e.calibration = as_published(calibration, row);
    const sim::Simulation simulation(set, e.baseline, e, network);
    steps.push_back(simulation.prediction());
  }
  return steps;
}

}  // namespace

// In its steady state a pipeline takes the same time for each further group of as many micro-batches as it has stages,
// so two short steps determine the length of a long one (docs/simulation.md).
Point predict(const Row& row, const std::string& configs, std::span<const config::Calibration> calibrations) {
  constexpr std::int64_t shortest = 3;
  const auto number = [&](const char* name) { return static_cast<std::int64_t>(std::stoll(row.at(name))); };
  const std::int64_t stages = number("pipeline_parallel");
  const std::int64_t replicas = number("gpus") / (number("tensor_parallel") * stages * number("context_parallel"));
  const std::int64_t of_micro_batch = replicas * number("micro_batch_size");
  const std::int64_t micro_batches = number("global_batch_size") / of_micro_batch, few = shortest * stages;
  Point point{row, std::stod(row.at("step_seconds")), {}, 0, {}};
  point.gpu = experiment_of(row, configs, number("global_batch_size")).hardware->gpu_file();
  const bool is_long = micro_batches > few + stages;
  const auto first = steps_of(row, configs, (is_long ? few : micro_batches) * of_micro_batch, calibrations);
  const auto second = is_long ? steps_of(row, configs, (few + stages) * of_micro_batch, calibrations) : first;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double each_s = (second[i].step_s - first[i].step_s) / static_cast<double>(stages);
    point.predicted_s.push_back(first[i].step_s + (is_long ? static_cast<double>(micro_batches - few) * each_s : 0));
    point.largest_message_bytes = first[i].largest_message_bytes;
  }
  return point;
}

std::vector<Pair> pairs_of(std::span<const Point> points) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      std::set<std::string> differs;
      for (const auto& [column, value] : points[i].row) {
        if (value != points[k].row.at(column)) differs.insert(setting_of(column));
      }
      differs.erase("");
      if (differs.size() == 1 && !differs.contains("source"))
        pairs.push_back({&points[i], &points[k], *differs.begin()});
    }
  }
  return pairs;
}

}  // namespace harness::accuracy
