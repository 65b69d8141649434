#include <algorithm>
#include <optional>
#include <ostream>

#include "backends/backends.h"
#include "base/error.h"
#include "cli/doctor_report.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "doctor/diagnosis.h"
#include "doctor/examine.h"
#include "doctor/explain.h"
#include "doctor/load_stage.h"
#include "doctor/nccl_stage.h"

namespace harness::cli {
namespace {

using doctor::Stage;

// Another root is another machine, on which nothing can be started.
std::vector<Stage> stages_of(const DoctorOptions& options) {
  const bool elsewhere = options.sysroot != "/";
  if (options.stages.empty()) return doctor::parse_stages(elsewhere ? "static" : doctor::all_stages);
  std::vector<Stage> stages = doctor::parse_stages(options.stages);
  if (elsewhere && stages != std::vector{Stage::facts}) {
    fail(
        "--stages {} starts workers on this machine, but --sysroot {} shows another; with --sysroot, give --stages "
        "static",
        options.stages, quote(options.sysroot));
  }
  return stages;
}

// Why this program has no workers on a backend; "": it has.
std::string what_is_missing(config::BackendKind backend) try {
  static_cast<void>(backends::get(backend));
  return "";
} catch (const Error& e) {
  return e.what();
}

std::optional<config::Hardware> hardware_of(const std::vector<doctor::Node>& nodes) {
  for (const doctor::Node& node : nodes) {
    for (const std::string& gpu : node.facts.under("nvml"))
      return config::find_hardware_for_device(node.facts.text(fmt::format("nvml/{}/name", gpu)), "");
  }
  return std::nullopt;
}

doctor::Diagnosis examine_all(job::Job& job, const DoctorOptions& options) {
  const std::vector<Stage> stages = stages_of(options);
  const auto wanted = [&](Stage stage) { return std::ranges::find(stages, stage) != stages.end(); };
  const std::vector<doctor::Node> nodes = doctor::examine(job, options.sysroot);
  doctor::Diagnosis diagnosis = wanted(Stage::facts) ? doctor::diagnose(nodes) : doctor::count_nodes(nodes);
  if (!wanted(Stage::nccl) && !wanted(Stage::load)) return diagnosis;
  const bool has_gpus = std::ranges::any_of(job.places(), [](const job::RankPlace& p) { return p.gpus.count > 0; });
  const config::BackendKind backend = config::usual_backend(has_gpus);
  const doctor::Bench bench{job, nodes, backend, what_is_missing(backend)};
  if (wanted(Stage::nccl)) doctor::add(diagnosis, doctor::run_nccl_stage(bench));
  if (wanted(Stage::load)) {
    const std::optional<config::Hardware> hardware = hardware_of(nodes);
    doctor::add(diagnosis, doctor::run_load_stage(bench, hardware ? &*hardware : nullptr));
  }
  return diagnosis;
}

}  // namespace

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  const doctor::Diagnosis diagnosis = examine_all(job, options);
  if (options.format == "json") {
    out << doctor_json(diagnosis);
  } else if (options.format == "md") {
    out << report::write_markdown(doctor_document(diagnosis, options.all));
  } else {
    out << view(doctor_document(diagnosis, options.all), under_a_launcher, out);
  }
  return doctor::exit_code(diagnosis, options.strict);
}

int doctor_explain(const DoctorOptions& options, std::ostream& out) {
  out << doctor::explain(options.explain);
  return 0;
}

}  // namespace harness::cli
