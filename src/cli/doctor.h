#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "config/experiment.h"
#include "doctor/record.h"
#include "report/document.h"

namespace harness::cli {

/// The question of `doctor --allreduce`. within_s 0: not asked; ranks 0: as many as there are.
struct AllReduce {
  double bytes = 0, within_s = 0;
  int ranks = 0;
};
/// Throws Error for a size or a time that is none, is not above 0 or has no unit.
AllReduce all_reduce_of(const DoctorOptions& options);

/// The machines that it runs on. `fabric`: what their ports carry, instead of what `hardware` says.
struct Machines {
  config::Hardware hardware;
  config::Fabric fabric;
  int ranks = 0, ranks_per_node = 0;
};
/// One rank for each GPU, or where there is none for each of the job's.
Machines machines_of(const std::vector<doctor::Node>& nodes);
/// Throws Error if the hardware file does not say how many GPUs a machine has.
Machines machines_of(const std::string& hardware_name);

/// Prints the least time and the predicted one, as text, md or json; ranks are placed densely. Returns 2 where `within`
/// is impossible, else 0. Throws Error where nothing is known that limits it.
int print_all_reduce(const AllReduce& asked, const Machines& machines, const std::string& format, std::ostream& out);

}  // namespace harness::cli
