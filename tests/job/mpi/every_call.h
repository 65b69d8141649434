#pragma once

#include <memory>

#include "job/mpi/ranks.h"

namespace harness::test {

/// The ranks that mpirun started, each as if it were alone on a node of its own.
std::unique_ptr<mpi::Ranks> start_apart();
/// The same with guests: the first node has 3 ranks, the second 1, the third 2, and so on. `lazy`: MPI sends no note
/// before it is flushed.
std::unique_ptr<mpi::Ranks> start_uneven(bool lazy = false);

/// Makes every call that ranks have, and throws Error where one does not do what ranks.h says. At the end, rank 0 says
/// which ranks share a node.
int make_every_call(mpi::Ranks& ranks);

}  // namespace harness::test
