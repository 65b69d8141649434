#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "backends/backends.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "report/document.h"
#include "sweep/probe.h"

namespace harness::cli {
namespace {

// As the option says, or as the machine is.
config::BackendKind backend_of(const job::Job& job, const CalibrateOptions& options) {
  if (!options.backend.empty()) return option_value("--backend", options.backend, config::parse_backend);
  return config::usual_backend(
      std::ranges::any_of(job.places(), [](const job::RankPlace& place) { return place.gpus.count > 0; }));
}

void require_computing(config::BackendKind backend) {
  if (!config::traits_of(backend).predicts()) return;
  fail("backend {} computes nothing that could be measured; give --backend cpu or cuda", config::name_of(backend));
}

struct Sizes {
  calibrate::Wanted wanted;
  std::optional<config::Hardware> hardware;  // that the configuration names
};

Sizes sizes_of(const job::Job& job, const CalibrateOptions& options) {
  const config::BackendKind backend = backend_of(job, options);
  require_computing(backend);
  if (options.config.empty()) return {calibrate::usual(backend), {}};
  std::vector<std::string> overrides;
  if (!options.backend.empty()) overrides.push_back("backend=" + options.backend);
  const config::Experiment experiment = config::load_experiment(options.config, overrides);
  require_computing(experiment.backend);
  if (experiment.model.layers == 0)
    fail("{} has no model, whose step says what sizes to measure; give a configuration with one, or none",
         options.config);
  return {calibrate::wanted_by(plan_sweep(job, experiment, {}, plan::Processes::as_needed)), experiment.hardware};
}

// Facts that a GPU does not report stand in the file that the configuration names, if that is of this GPU, or else
// in the one that lists it. Only counts and sizes are taken: the rates are those that are measured.
void complete(calibrate::Device& device, const std::optional<config::Hardware>& named, const std::string& config_path,
              const std::string& hardware_path, std::ostream& err) {
  const bool is_named = named && (named->devices.empty() || named->is(device.name));
  const auto known = is_named ? named : config::find_hardware_for_device(device.name, config_path);
  if (!known) {
    err << fmt::format(
        "harness: no hardware file lists the {}: its memory is not known, nor whether NVLink switches connect it; "
        "{} will not say it (`memory`, `node.nvswitch`), and you can add it there\n",
        escaped(device.name), escaped(hardware_path));
    return;
  }
  device.memory_bytes = known->memory_bytes;
  device.nvswitch = known->nvswitch;
  if (device.sms == 0) device.sms = known->sms;
  if (device.compute_capability == 0) device.compute_capability = known->compute_capability;
}

std::string gigabytes_per_s(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

}  // namespace

int calibrate(job::Job& job, const CalibrateOptions& options, std::ostream& out, std::ostream& err) {
  const std::string prefix = options.output.empty() ? job.places().front().host : options.output;
  const std::string hardware = prefix + "-hardware.yaml", calibration = prefix + "-calibration.yaml";
  for (const std::string& path : {hardware, calibration}) check_output(path, options.force);
  constexpr double usual_s = 60;
  const double limit_s =
      options.time_budget.empty() ? usual_s : option_value("--time-budget", options.time_budget, parse_seconds);
  const Sizes sizes = sizes_of(job, options);
  const calibrate::Wanted& wanted = sizes.wanted;
  const config::BackendTraits& traits = config::traits_of(wanted.backend);
  static_cast<void>(backends::get(wanted.backend));  // an Error here says what is missing
  if (traits.ranks_are_gpus) sweep::require_gpus(job.places(), false, "calibrate");
  const int nodes = sweep::topology_of(job.places()).nodes();
  err << fmt::format("harness: calibrating on {} of {}, backend {}, for about {}\n", plural(job.size(), "rank"),
                     plural(nodes, "node"), config::name_of(wanted.backend), show_seconds(limit_s));
  if (job.size() == 1) err << "harness: one rank has nobody to talk to, so no communication is measured\n";
  if (nodes > 1 && !calibrate::measures_within_nodes(job.places())) {
    err << "harness: nothing is measured of the links within a node: that needs as many ranks on each, and more than "
           "one\n";
  }
  calibrate::Device device = calibrate::device_of(job, wanted);
  if (traits.ranks_are_gpus) complete(device, sizes.hardware, options.config, hardware, err);
  const calibrate::Measured measured = calibrate::measure(job, wanted, device, limit_s, [&](const std::string& line) {
    err << fmt::format("harness: {}\n", line) << std::flush;
  });
  const calibrate::Calibrated found = calibrate::calibrated_by(measured);
  const std::string stem = std::filesystem::path(hardware).stem().string();
  write_output(hardware, calibrate::hardware_text(measured, found), options.force);
  write_output(calibration, calibrate::calibration_text(measured, found, wanted, stem), options.force);
  report::Table table;
  table.columns = {{"best rate of all ranks at once", true}, {"measured"}};
  for (const auto& [precision, flops] : found.peak_flops)
    table.rows.push_back({fmt::format("products, {}", config::name_of(precision)), show_flops(flops)});
  table.rows.push_back({"memory", gigabytes_per_s(found.memory_bytes_per_s)});
  if (found.link_bytes_per_s > 0)
    table.rows.push_back({"ranks of a node, bus bandwidth", gigabytes_per_s(found.link_bytes_per_s)});
  if (found.node_bytes_per_s > 0)
    table.rows.push_back({"nodes, bus bandwidth", gigabytes_per_s(found.node_bytes_per_s)});
  out << fmt::format(
      "{}\n{}\n{}\npredict with: {} sweep CONFIG --backend sim --ranks {} --hardware {} --set calibration={}\n",
      table.text(), escaped(hardware), escaped(calibration), called(), measured.ranks, shell_word(hardware),
      shell_word(calibration));
  return 0;
}

}  // namespace harness::cli
