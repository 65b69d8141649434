#include "accuracy_points.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "config/experiment.h"
#include "machine/topology.h"
#include "plan/prepare.h"
#include "sim/simulation.h"
#include "workloads/workload.h"

namespace harness::accuracy {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

// As somebody would configure it. Megatron-LM pads the vocabulary to a multiple of 128 on every tensor rank; without
// overlap it reduces all gradients at once.
std::string configuration(const Row& row) {
  const auto at = [&](const char* name) { return row.at(name); };
  const std::int64_t step = 128 * std::stoll(at("tensor_parallel"));
  const std::int64_t vocab = (std::stoll(at("vocab")) + step - 1) / step * step;
  const bool overlaps = at("overlap_grad_reduce") == "1", interleaves = at("virtual_pipeline") != "1";
  return fmt::format(
      "backend: sim\nhardware: {}\ncalibration: megatron-2022\nfabric: {{node: {} GB/s}}\n"
      "model: {{layers: {}, hidden: {}, heads: {}, vocab: {}, sequence: {}}}\n"
      "baseline:\n  precision: {}\n  global_batch_size: {}\n  micro_batch_size: {}\n"
      "  layout: {{tensor_parallel: {}, pipeline_parallel: {}}}\n  recompute: {}\n  sequence_parallel: {}\n"
      "  sharding: {}\n  attention: {}\n  overlap_grad_reduce: {}\n  bucket_size: {}\n{}",
      at("gpu"), std::stod(at("fabric_per_node_gbit_s")) / 8, at("layers"), at("hidden"), at("heads"), vocab,
      at("sequence"), at("precision"), at("global_batch_size"), at("micro_batch_size"), at("tensor_parallel"),
      at("pipeline_parallel"), at("recompute"), at("sequence_parallel") == "1", at("sharding"), at("attention"),
      overlaps, overlaps ? "160 MiB" : "1 TiB",
      interleaves ? fmt::format("  pipeline_schedule: interleaved\n  virtual_pipeline: {}\n", at("virtual_pipeline"))
                  : "");
}

config::Experiment experiment_of(const Row& row, const std::string& configs) {
  return config::load_recorded(configuration(row), fmt::format("{}/{}.yaml", configs, row.at("id")), {});
}

// What a setting is called in which two rows differ; "" for what follows from others or is no setting.
std::string setting_of(const std::string& column) {
  constexpr std::array<const char*, 3> axes{"tensor_parallel", "pipeline_parallel", "virtual_pipeline"};
  for (const char* axis : axes) {
    if (column == axis) return "layout";
  }
  return column == "id" || column == "use" || column == "step_seconds" ? "" : column;
}

}  // namespace

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) fail("{} cannot be read", path);
  const std::vector<std::string> names = fields_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != names.size()) fail("{}: {} fields instead of {}: {}", path, fields.size(), names.size(), line);
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
  }
  return rows;
}

config::Calibration read_calibration(const std::string& configs) {
  const std::string text =
      "backend: sim\ncalibration: megatron-2022\nmodel: {layers: 1, hidden: 64, heads: 1, vocab: 64, sequence: 8}\n"
      "baseline: {precision: bf16}\n";
  return config::load_recorded(text, configs + "/accuracy.yaml", {}).calibration.value();
}

Point predict(const Row& row, const std::string& configs, std::span<const config::Calibration> calibrations) {
  config::Experiment e = experiment_of(row, configs);
  const plan::Plan plan = plan::prepare(e, std::stoi(row.at("gpus")), {"baseline"});
  const plan::PlannedCase& baseline = plan.baseline();
  const auto topology = machine::Topology::node_by_node(plan.ranks, e.hardware->gpus_of_node);
  const sim::Network network = sim::network_of(e, topology.node_of);
  const program::ProgramSet set = workloads::build_programs(e.model, baseline.settings, baseline.layout);
  Point point{row, std::stod(row.at("step_seconds")), {}, 0};
  for (const config::Calibration& calibration : calibrations) {
    e.calibration = calibration;
    const sim::Simulation simulation(set, baseline.settings, e, network);
    const sim::Prediction prediction = sim::predict(simulation);
    point.predicted_s.push_back(prediction.step_s);
    point.largest_message_bytes = prediction.largest_message_bytes;
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
