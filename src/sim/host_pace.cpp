#include "sim/host_pace.h"

#include <algorithm>
#include <cmath>

namespace harness::sim {
namespace {

bool meet_in_layers(const program::Layout& layout) {
  return layout[program::Axis::tensor] > 1;
}

// Work that the GPU does one after the other: computations, and what tensor ranks tell each other between them.
bool is_in_pass(const program::ProgramSet& set, const program::Operation& op) {
  const program::Phase phase = op.label.phase;
  if (phase != program::Phase::forward && phase != program::Phase::backward) return false;
  if (!program::is_communication(op.action)) return true;
  const program::GroupId group = program::group_of(op.action);
  return group >= 0 && set.groups[group].axes == program::AxisSet::of({program::Axis::tensor});
}

}  // namespace

double pass_seconds(std::span<const Issued> pass, bool meet, double q) {
  double gpu_s = 0, host_s = 0;
  for (const Issued& op : pass) {
    gpu_s += op.gpu_s;
    host_s += op.host_s;
  }
  if (meet) return std::pow(std::pow(gpu_s, q) + std::pow(host_s, q), 1 / q);
  double longest_s = gpu_s, issued_s = 0, rest_s = gpu_s;
  for (const Issued& op : pass) {
    issued_s += op.host_s;
    longest_s = std::max(longest_s, issued_s + rest_s);
    rest_s -= op.gpu_s;
  }
  return longest_s;
}

std::vector<double> stretch_by_host(const program::ProgramSet& set, const program::Program& program,
                                    std::span<const Issued> issued, double q) {
  const std::vector<program::Operation>& step = program.step;
  std::vector<double> stretch(step.size(), 1);
  std::vector<Issued> pass;
  std::vector<std::size_t> computations;
  double computing_s = 0;
  const auto close = [&] {
    double gpu_s = 0;
    for (const Issued& op : pass) gpu_s += op.gpu_s;
    if (computing_s > 0) {
      const double longer = 1 + (pass_seconds(pass, meet_in_layers(set.layout), q) - gpu_s) / computing_s;
      for (const std::size_t id : computations) stretch[id] = longer;
    }
    pass.clear();
    computations.clear();
    computing_s = 0;
  };
  const program::Label* last = nullptr;
  for (std::size_t id = 0; id < step.size(); ++id) {
    const program::Operation& op = step[id];
    if (!is_in_pass(set, op)) continue;
    if (last != nullptr && (last->phase != op.label.phase || last->micro_batch != op.label.micro_batch)) close();
    last = &op.label;
    pass.push_back(issued[id]);
    if (program::is_communication(op.action)) continue;
    computations.push_back(id);
    computing_s += issued[id].gpu_s;
  }
  close();
  return stretch;
}

bool host_paces(const program::Layout& layout, const config::Software& software) {
  return software.host_s > 0 && software.host_power > 0 &&
         (meet_in_layers(layout) || layout[program::Axis::pipeline] > 1);
}

}  // namespace harness::sim
