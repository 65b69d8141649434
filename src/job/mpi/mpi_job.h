#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "job/job.h"
#include "machine/gpus.h"

namespace harness::mpi {

/// Calls MPI_Init and makes the supervisors of a job, one on each MPI rank. A supervisor never blocks inside MPI while
/// workers run: it polls and sleeps. It touches no GPU. `answer` gives this rank's answers to Job::ask(); without it,
/// they are empty. Job::leave() calls MPI_Finalize; the destructor calls no MPI.
///
/// Throws Error with advice for the usual launch mistake: many processes that each believe they are rank 0 of 1. The
/// message is empty in all of these processes but the first, so that it is printed once.
std::unique_ptr<job::Job> join(job::Answer answer = {});

/// Looks up a name in the environment; nothing if it is unset.
using Lookup = std::function<std::optional<std::string>(const char* name)>;
/// Looks up a name in this process's own environment.
std::optional<std::string> own_environment(const char* name);

/// The launcher's statement about this process, read from the environment before MPI starts.
struct LauncherClaim {
  std::string variable;  // the variable that states the size
  int size = 1, rank = 0;
  int ranks_per_node = 0;  // 0: unknown
};
/// Returns nothing if no launcher started this process.
std::optional<LauncherClaim> launcher_claim(const Lookup& lookup);

/// The launcher's statement about this process's GPUs.
machine::GpuEnvironment gpu_environment(const Lookup& lookup);

/// Throws Error for the launch mistake that join() describes.
void check_launch(const std::optional<LauncherClaim>& claim, int mpi_size, const std::string& mpi_library);

/// Seconds between a launcher's SIGTERM and its SIGKILL; 0 if it sends no SIGKILL.
double seconds_until_sigkill(const Lookup& lookup);

}  // namespace harness::mpi
