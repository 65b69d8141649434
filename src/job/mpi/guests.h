#pragma once

#include <memory>

#include "job/mpi/ranks.h"

namespace harness::mpi {

// A node's only rank may be the host of guests: processes of this program that it starts, with its own arguments, and
// that are ranks like any other from then on. They do without MPI: each sends its calls over a socket to its host,
// which makes one call of MPI for its node.

/// In a process that a host started: the ranks as this guest sees them. Nothing in any other process.
std::unique_ptr<Ranks> join_as_guest();

/// Collective over `launched`, the ranks that the launcher started. A rank that is alone on its node becomes `wanted`
/// ranks, at least one: itself and its guests, with numbers that follow each other. Returns `launched` where no node
/// has guests.
///
/// A guest ends when its host does. A guest that ends early is an Error at its host, thrown by whatever call notices
/// it; later calls throw an empty one. finish() waits some seconds for guests to end, then kills them.
std::unique_ptr<Ranks> with_guests(std::unique_ptr<Ranks> launched, int wanted);

}  // namespace harness::mpi
