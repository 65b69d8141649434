#pragma once

#include <iosfwd>

#include "cli/verbs.h"
#include "doctor/bound.h"

namespace harness::cli {

/// Throws Error if the size or the time that is asked for is none.
void check_allreduce(const DoctorOptions& options);

/// `doctor --allreduce SIZE`: the least time that it can take, with formulas and assumptions. Returns 2 where --within
/// asks for less, else 0.
int doctor_allreduce(const doctor::Fabric& fabric, const DoctorOptions& options, std::ostream& out);

}  // namespace harness::cli
