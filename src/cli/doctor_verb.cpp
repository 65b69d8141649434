#include <algorithm>
#include <optional>
#include <ostream>

#include "backends/backends.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/identity.h"
#include "cli/doctor.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "doctor/diagnosis.h"
#include "doctor/examine.h"
#include "doctor/load_stage.h"
#include "doctor/nccl_stage.h"
#include "store/result_file.h"

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

// Reads the facts that a result file recorded at the start of its sweep.
doctor::RecordedFacts read_doctors_record(const std::string& path) {
  const std::string text = store::read_result(path, {.rank_seconds = false, .timeline = false}).doctor.facts;
  if (text.empty()) fail("{} holds no facts of doctor's: it is a prediction, or of too many nodes", path);
  return doctor::read_facts(text, path);
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

doctor::Diagnosis diagnosis_of(job::Job& job, const std::vector<doctor::Node>& nodes,
                               const std::vector<Stage>& stages) {
  const auto wanted = [&](Stage stage) { return std::ranges::find(stages, stage) != stages.end(); };
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

int print(const doctor::Diagnosis& diagnosis, const doctor::RecordedFacts& seen, const DoctorOptions& options,
          std::ostream& out) {
  std::optional<doctor::Changes> changes;
  if (!options.against.empty()) changes = doctor::changes_since(read_doctors_record(options.against[0]), seen);
  if (options.format == "json") {
    out << doctor_json(diagnosis, changes);
  } else {
    const std::string since = changes ? options.against[0] : "";
    print(doctor_document(diagnosis, options.all, changes, since), options.format, under_a_launcher, out);
  }
  return doctor::exit_code(diagnosis, options.strict);
}

// Before nodes are asked or judged: what is wrong with a file or a size.
void check(const DoctorOptions& options) {
  if (!options.allreduce.empty()) static_cast<void>(all_reduce_of(options));
  if (!options.against.empty()) static_cast<void>(read_doctors_record(options.against[0]));
}

}  // namespace

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  check(options);
  const std::vector<Stage> stages = stages_of(options);
  const doctor::RecordedFacts seen{utc_text(), tool_version(), doctor::examine(job, {options.sysroot})};
  if (!options.allreduce.empty())
    return print_all_reduce(all_reduce_of(options), machines_of(seen.nodes), options.format, out);
  return print(diagnosis_of(job, seen.nodes, stages), seen, options, out);
}

int doctor_alone(const DoctorOptions& options, std::ostream& out) {
  if (!options.explain.empty()) {
    out << doctor::explain(options.explain);
    return 0;
  }
  if (options.list) {
    print_checks(options.format, out);
    return 0;
  }
  if (options.against.size() == 2) {
    if (options.sysroot != "/" || !options.stages.empty())
      fail("--against with two files looks at no node: leave out --sysroot and --stages");
    const doctor::RecordedFacts seen = read_doctors_record(options.against[1]);
    return print(doctor::diagnose(seen.nodes), seen, options, out);
  }
  return print_all_reduce(all_reduce_of(options), machines_of(options.hardware), options.format, out);
}

}  // namespace harness::cli
