#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "job/job.h"
#include "job/mpi/ranks.h"

namespace harness::mpi {

/// Which processes are the ranks of a job.
enum class Launch : std::uint8_t {
  as_it_is,      // those that the launcher started
  rank_per_gpu,  // where that is one on a node, it starts others, so that there is one for each GPU that it sees
};

/// MPI_Init: the supervisors of a job, one on each MPI rank. A supervisor never blocks inside MPI while workers run: it
/// polls and sleeps. It touches no GPU. `answer` is what each rank says to Job::ask(); without it, nothing.
/// Job::leave() calls MPI_Finalize; the destructor calls no MPI.
///
/// Throws Error with advice for the usual launch mistake: many processes that each take themselves for rank 0 of 1. The
/// message is empty in all of these processes but the first, so that it is printed once.
///
/// `start`: what gives the ranks that the launcher started; not called in a process that one of them started.
std::unique_ptr<job::Job> join(job::Answer answer = {}, Launch launch = Launch::as_it_is,
                               const std::function<std::unique_ptr<Ranks>()>& start = Ranks::start);

}  // namespace harness::mpi
