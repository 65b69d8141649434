#pragma once

#include <memory>

#include "job/job.h"

namespace harness::mpi {

/// MPI_Init: the supervisors of a job, one on each MPI rank. A supervisor never blocks inside MPI while workers run: it
/// polls and sleeps. It touches no GPU. `answer` is what each rank says to Job::ask(); without it, nothing.
/// Job::leave() calls MPI_Finalize; the destructor calls no MPI.
///
/// Throws Error with advice for the usual launch mistake: many processes that each take themselves for rank 0 of 1. The
/// message is empty in all of these processes but the first, so that it is printed once.
std::unique_ptr<job::Job> join(job::Answer answer = {});

}  // namespace harness::mpi
