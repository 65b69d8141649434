#include <filesystem>
#include <optional>
#include <ostream>

#include "backends/backends.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/files.h"
#include "cli/one_sweep.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "plan/prepare.h"
#include "report/table.h"
#include "sweep/probe.h"
#include "sweep/require_gpus.h"

namespace harness::cli {
namespace {

config::BackendKind backend_of(const job::Job& job, const CalibrateOptions& options) {
  if (!options.backend.empty()) return config::parse_backend(options.backend);
  for (const job::RankPlace& place : job.places()) {
    if (place.gpus.count > 0) return config::usual_backend(true);
  }
  return config::usual_backend(false);
}

void require_computing(config::BackendKind backend) {
  if (!config::traits_of(backend).predicts()) return;
  fail("backend {} computes nothing that could be measured; give --backend cpu or cuda", config::name_of(backend));
}

calibrate::Wanted wanted(const job::Job& job, const CalibrateOptions& options) {
  if (!options.backend.empty()) require_computing(config::parse_backend(options.backend));
  if (options.config.empty()) return calibrate::usual(backend_of(job, options));
  std::vector<std::string> overrides;
  if (!options.backend.empty()) overrides.push_back("backend=" + options.backend);
  const config::Experiment experiment = config::load_experiment(options.config, overrides);
  require_computing(experiment.backend);
  if (experiment.model.layers == 0)
    fail("{} has no model, whose step says what sizes to measure; give a configuration with one, or none",
         options.config);
  return calibrate::wanted_by(plan_sweep(job, experiment, {}, plan::Processes::as_needed));
}

double limit_of(const std::string& text) try {
  constexpr double usual_s = 60;
  return text.empty() ? usual_s : parse_seconds(text);
} catch (const Error& e) {
  throw Error(fmt::format("--time-budget: {}", e.what()));
}

// Its counts; the rates are those that are measured.
std::optional<config::Hardware> known_of(const std::string& device, config::BackendKind backend) {
  if (!config::traits_of(backend).ranks_are_gpus) return std::nullopt;
  auto known = config::find_hardware_for_device(device, "");
  if (!known) throw Error(config::unknown_device_message(device, "configs/x.yaml"));
  return known;
}

std::string errors_text(const calibrate::Laws& laws) {
  report::Table table;
  table.columns = {{"law", true}, {"points"}, {"mean error"}};
  for (const calibrate::LawError& e : laws.errors)
    table.rows.push_back({e.what, fmt::format("{}", e.points), percent(e.error)});
  return table.text();
}

}  // namespace

int calibrate(job::Job& job, const CalibrateOptions& options, std::ostream& out, std::ostream& err) {
  const std::string prefix = options.output.empty() ? job.places().front().host : options.output;
  const std::string hardware = prefix + "-hardware.yaml", calibration = prefix + "-calibration.yaml";
  for (const std::string& path : {hardware, calibration}) check_output(path, options.force);
  const double limit_s = limit_of(options.time_budget);
  const calibrate::Wanted sizes = wanted(job, options);
  static_cast<void>(backends::get(sizes.backend));  // an Error here says what is missing
  if (config::traits_of(sizes.backend).ranks_are_gpus) sweep::require_gpus(job.places(), false, "calibrate");
  err << fmt::format("harness: calibrating on {} of {}, backend {}, for about {}\n", plural(job.size(), "rank"),
                     plural(sweep::topology_of(job.places()).nodes(), "node"), config::name_of(sizes.backend),
                     show_seconds(limit_s));
  if (job.size() == 1) err << "harness: one rank has nobody to talk to, so no communication is measured\n";
  const calibrate::Measured measured = calibrate::measure(job, sizes, limit_s, [&](const std::string& line) {
    err << "harness: " << line << "\n" << std::flush;
  });
  const auto known = known_of(measured.device, sizes.backend);
  const calibrate::Laws laws = calibrate::fit(measured, known ? known->sms : 0);
  const std::string stem = std::filesystem::path(hardware).stem().string();
  write_output(hardware, calibrate::hardware_text(measured, laws, known ? &*known : nullptr), options.force);
  write_output(calibration, calibrate::calibration_text(measured, laws, sizes, stem), options.force);
  const std::size_t curves =
      laws.calibration.measured.computations.size() + laws.calibration.measured.communications.size();
  out << fmt::format(
      "laws against the curves that they are fitted to (micro-benchmarks, not steps); {} are written as measured, "
      "because their law is off by more than 5 %:\n{}\n{}\n{}\npredict with: ./harness sweep CONFIG --backend sim "
      "--ranks {} --hardware {} --set calibration={}\n",
      plural(static_cast<std::int64_t>(curves), "curve"), errors_text(laws), hardware, calibration, measured.ranks,
      hardware, calibration);
  return 0;
}

}  // namespace harness::cli
