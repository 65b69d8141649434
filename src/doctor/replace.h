#pragma once

#include "doctor/bundle.h"

namespace harness::doctor {

/// The same for other eyes: the names of hosts, IP and MAC addresses, GUIDs, UUIDs and the names of users' folders are
/// replaced, each always by the same word ("node3", "address1"). What tells of the launcher and the scheduler
/// (OMPI_MCA_*, SLURM_*) is left out. Its findings are those of the original, in these words. Looks where free text can
/// stand: the environment, NCCL's file, the kernel's command line and log, reasons.
Bundle without_names(const Bundle& bundle);

}  // namespace harness::doctor
