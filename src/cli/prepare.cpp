#include "cli/prepare.h"

#include "backend/backend.h"
#include "base/error.h"
#include "cli/version.h"
#include "plan/from_model.h"

namespace harness {
namespace {

// A worker without a model: the program, its libraries and their thread stacks. Measured on the cpu backend
// (docs/method.md); a GPU's context is on the GPU and in its own figures.
constexpr double worker_base_bytes = 30 << 20;

ResultCase case_row(const Prepared& prepared, std::size_t i) {
  const Case& c = prepared.plan.cases[i];
  const Survey& s = prepared.surveys[i];
  ResultCase row;
  row.name = c.name;
  row.variable = c.variable;
  row.value = c.value;
  row.status = c.impossible.empty() ? CaseStatus::pending : CaseStatus::impossible;
  row.reason = c.impossible.empty() ? fmt::format("{}", fmt::join(c.notes, "; ")) : c.impossible;
  for (const Variable& v : registry()) row.settings.push_back(v.print(c.settings));
  if (!c.impossible.empty()) return row;
  row.ranks = c.layout.ranks();
  row.tensor_parallel = c.layout[Axis::tensor];
  row.pipeline_parallel = c.layout[Axis::pipeline];
  row.data_parallel = c.layout[Axis::data];
  row.micro_batches = c.micro_batches;
  row.tokens_per_step = s.tokens_per_step;
  row.model_flop_per_step = s.flop.model;
  row.noncausal_flop_per_step = s.flop.noncausal;
  row.hardware_flop_per_step = s.hardware_flop;
  row.planned_memory_bytes = planned_memory_bytes(prepared, i);
  row.program_hash = fmt::format("{:016x}", s.program_hash);
  return row;
}

}  // namespace

Prepared prepare(const Experiment& experiment, int ranks, const std::vector<std::string>& only) {
  Prepared p{make_plan(with_model_values(experiment, ranks), ranks, only), {}, only};
  for (const Case& c : p.plan.cases) {
    p.surveys.push_back(c.impossible.empty() ? survey(experiment.model, c, declared_fused(experiment.backend))
                                             : Survey{});
  }
  return p;
}

double planned_memory_bytes(const Prepared& prepared, std::size_t i) {
  if (prepared.surveys[i].roles == 0) return 0;
  return static_cast<double>(prepared.surveys[i].peak_bytes) + worker_base_bytes;
}

double configured_peak_flops(const Experiment& experiment, Precision precision, std::string& source) {
  if (experiment.peak_flops > 0) {
    source = "given in the configuration (peak_flops)";
    return experiment.peak_flops;
  }
  if (!experiment.hardware) return 0;
  const Hardware& h = *experiment.hardware;
  const double peak = h.peak_flops(precision);
  if (peak > 0) source = fmt::format("hardware file {}: {}", h.name, h.source);
  return peak;
}

std::optional<Hardware> hardware_for(const Experiment& experiment, const std::string& device) {
  if (experiment.hardware) {
    const Hardware& h = *experiment.hardware;
    if (h.devices.empty() || h.is(device)) return std::nullopt;
    fail(
        "the configuration counts with the peak of {} (devices: {}), but the ranks' GPU is a {}: MFU would be wrong. "
        "Leave `hardware` out to have its file found, or name the right one; if it is this GPU under another name, add "
        "that to `devices` in the file",
        h.name, fmt::join(h.devices, ", "), device);
  }
  if (experiment.without_hardware || experiment.peak_flops > 0) return std::nullopt;
  auto found = find_hardware_for_device(device, experiment.path);
  if (!found) throw Error(unknown_device_message(device, experiment.path));
  return found;
}

Result planned_result(const Prepared& prepared) {
  const Experiment& e = prepared.plan.experiment;
  Result r;
  r.tool_version = tool_version();
  r.name = e.name;
  r.backend = name_of(e.backend);
  r.ranks = prepared.plan.ranks;
  r.rounds = e.measure.rounds;
  r.warmup_steps = e.measure.warmup_steps;
  r.steps = e.measure.steps;
  r.seed = e.measure.seed;
  r.smallest_effect = e.measure.smallest_effect;
  r.config_text = e.text;
  r.config_path = e.path;
  r.overrides = e.overrides;
  r.model_name = e.model.name;
  r.layers = e.model.layers;
  r.hidden = e.model.hidden;
  r.heads = e.model.heads;
  r.vocab = e.model.vocab;
  r.sequence = e.model.sequence;
  r.flop_formula = workload_of(e.baseline).flop_formula();
  r.variables = variable_names();
  r.warnings = e.warnings;
  for (std::size_t i = 0; i < prepared.plan.cases.size(); ++i) r.cases.push_back(case_row(prepared, i));
  for (std::size_t i = 0; i < prepared.plan.cases.size(); ++i) {
    const Rate& rate = prepared.surveys[i].rate;
    if (rate.repetitions == 0) continue;
    r.points.push_back(
        {static_cast<std::int32_t>(i), rate.operation, rate.repetitions, rate.bytes, rate.bus_factor, 0, ""});
  }
  for (const Slot& slot : prepared.plan.schedule) {
    ResultBlock block;
    block.round = slot.round;
    block.position = slot.position;
    block.case_index = slot.case_index;
    r.blocks.push_back(block);
  }
  return r;
}

}  // namespace harness
