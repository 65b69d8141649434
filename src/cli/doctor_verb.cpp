#include <optional>
#include <ostream>

#include "base/error.h"
#include "cli/doctor_bound.h"
#include "cli/doctor_files.h"
#include "cli/doctor_report.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "doctor/diagnosis.h"
#include "doctor/examine.h"
#include "doctor/explain.h"

namespace harness::cli {
namespace {

int judge(const std::vector<doctor::Node>& nodes, const DoctorOptions& options, std::ostream& out) {
  std::optional<doctor::Changes> changes;
  if (!options.against.empty()) changes = doctor::changes_since(read_doctors_file(options.against), nodes);
  const doctor::Diagnosis diagnosis = doctor::diagnose(nodes);
  if (options.format == "json") {
    out << doctor_json(diagnosis, changes);
  } else {
    report::Document document = doctor_document(diagnosis, options.all);
    if (changes) document.sections.insert(document.sections.begin(), since_section(*changes, options.against));
    out << (options.format == "md" ? report::write_markdown(document) : view(document, under_a_launcher, out));
  }
  if (!options.bundle.empty()) write_doctors_file(options.bundle, nodes, options.force);
  return doctor::exit_code(diagnosis, options.strict);
}

int look(const std::vector<doctor::Node>& nodes, const DoctorOptions& options, std::ostream& out) {
  if (options.allreduce.empty()) return judge(nodes, options, out);
  return doctor_allreduce(doctor::fabric_of(nodes, options.ranks), options, out);
}

}  // namespace

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  // Before the nodes are asked: what is wrong with a file.
  if (!options.bundle.empty()) check_output(options.bundle, options.force);
  if (!options.against.empty()) static_cast<void>(read_doctors_file(options.against));
  return look(doctor::examine(job, options.sysroot), options, out);
}

int doctor_alone(const DoctorOptions& options, std::ostream& out) {
  if (!options.explain.empty()) {
    out << doctor::explain(options.explain);
    return 0;
  }
  if (!options.read.empty()) return look(read_doctors_file(options.read).nodes, options, out);

  return doctor_allreduce(doctor::fabric_of(config::hardware_named(options.hardware), options.ranks), options, out);
}

}  // namespace harness::cli
