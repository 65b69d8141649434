#include <ostream>

#include "cli/doctor_report.h"
#include "cli/verbs.h"
#include "cli/view.h"
#include "doctor/diagnosis.h"
#include "doctor/examine.h"
#include "doctor/explain.h"

namespace harness::cli {

int doctor(job::Job& job, const DoctorOptions& options, std::ostream& out) {
  const doctor::Diagnosis diagnosis = doctor::diagnose(doctor::examine(job, options.sysroot));
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
