// Compares predicted with published steps and writes docs/accuracy.md: `make accuracy`.
//
// usage: accuracy published_steps.csv CONFIGS > accuracy.md

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/predicted.h"
#include "config/experiment.h"
#include "plan/prepare.h"

namespace harness {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

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
      "baseline:\n  precision: bf16\n  global_batch_size: {}\n  micro_batch_size: {}\n"
      "  layout: {{tensor_parallel: {}, pipeline_parallel: {}}}\n  recompute: {}\n  sequence_parallel: {}\n"
      "  sharding: {}\n  attention: {}\n  overlap_grad_reduce: {}\n  bucket_size: {}\n{}",
      at("gpu"), std::stod(at("fabric_per_node_gbit_s")) / 8, at("layers"), at("hidden"), at("heads"), vocab,
      at("sequence"), at("global_batch_size"), at("micro_batch_size"), at("tensor_parallel"), at("pipeline_parallel"),
      at("recompute"), at("sequence_parallel") == "1", at("sharding"), at("attention"), overlaps,
      overlaps ? "160 MiB" : "1 TiB",
      interleaves ? fmt::format("  pipeline_schedule: interleaved\n  virtual_pipeline: {}\n", at("virtual_pipeline"))
                  : "");
}

double predicted_seconds(const Row& row, const std::string& configs) {
  const config::Experiment e = config::load_recorded(configuration(row), configs + "/" + row.at("id") + ".yaml", {});
  const plan::Plan plan = plan::prepare(e, std::stoi(row.at("gpus")), {"baseline"});
  return cli::predict_cases(plan, machine::Topology::node_by_node(plan.ranks, cli::usual_ranks_per_node(e)))
      .at(0)
      .step->step_s;
}

// Of relative errors.
std::string summary(const std::string& name, std::vector<double> errors) {
  double sum = 0, of_sizes = 0;
  for (const double e : errors) {
    sum += e;
    of_sizes += std::abs(e);
  }
  std::ranges::sort(errors, {}, [](double e) { return std::abs(e); });
  const auto n = static_cast<double>(errors.size());
  const auto size_at = [&](double share) {
    return 100 * std::abs(errors[static_cast<std::size_t>(std::ceil(share * n)) - 1]);
  };
  return fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:+.1f} % | {:+.1f} % |\n", name, errors.size(),
                     size_at(0.5), 100 * of_sizes / n, size_at(0.9), 100 * sum / n, 100 * errors.back());
}

int write(const std::string& csv, const std::string& configs) {
  std::string steps;
  std::map<std::string, std::vector<double>> sets;
  for (const Row& row : read_rows(csv)) {
    const double published = std::stod(row.at("step_seconds")), predicted = predicted_seconds(row, configs);
    const double error = predicted / published - 1;
    sets["all"].push_back(error);
    sets[row.at("source")].push_back(error);
    steps += fmt::format("| {} | {} | {} | {} | {:.3f} s | {:.3f} s | {:+.1f} % |\n", row.at("id"), row.at("gpu"),
                         row.at("gpus"), row.at("hidden"), published, predicted, 100 * error);
  }
  std::cout << "# Accuracy of predictions\n\n"
               "Written by `make accuracy`: predicted steps against published ones of Megatron-LM, with the\n"
               "calibration `megatron-2022`. Three of its numbers are fitted to these very steps, so the errors of\n"
               "other steps are larger. Configurations and sources: `bench/published_steps.csv`.\n\n"
               "| set | steps | median | mean | 90 of 100 within | bias | worst |\n|---|---|---|---|---|---|---|\n";
  for (const auto& [name, errors] : sets) std::cout << summary(name, errors);
  std::cout << "\n| step | GPU | GPUs | hidden | published | predicted | error |\n|---|---|---|---|---|---|---|\n"
            << steps;
  return 0;
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: accuracy published_steps.csv CONFIGS\n";
    return 2;
  }
  try {
    return harness::write(argv[1], argv[2]);
  } catch (const harness::Error& e) {
    std::cerr << "accuracy: " << e.what() << "\n";
    return 1;
  }
}
