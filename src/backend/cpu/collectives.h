#pragma once

#include <memory>

#include "backend/cpu/communication.h"
#include "backend/cpu/links.h"
#include "config/settings.h"

// Private to the sources that speak Gloo.
namespace harness::cpu {

using ContextPointer = std::shared_ptr<LinkedContext>;

// Transfers over a connected (or to be connected) context. Exceptions are Gloo's: communication.cpp translates.

/// With AllReduceAlgorithm::halving_doubling it must be made in the same order on all ranks.
std::unique_ptr<Transfer> make_all_reduce(ContextPointer context, backend::Tensor in, backend::Tensor out,
                                          program::Reduction reduction, config::AllReduceAlgorithm algorithm);
/// Ring.
std::unique_ptr<Transfer> make_reduce_scatter(ContextPointer context, backend::Tensor in, backend::Tensor out,
                                              program::Reduction reduction);
/// Ring.
std::unique_ptr<Transfer> make_all_gather(ContextPointer context, backend::Tensor in, backend::Tensor out);
std::unique_ptr<Transfer> make_all_to_all(ContextPointer context, backend::Tensor in, backend::Tensor out);
/// To or from `peer`, the other rank of a context of two.
std::unique_ptr<Transfer> make_send(ContextPointer context, backend::Tensor data, int peer);
std::unique_ptr<Transfer> make_receive(ContextPointer context, backend::Tensor data, int peer);
/// What any collective comes to in a group of one.
std::unique_ptr<Transfer> make_copy(backend::Tensor in, backend::Tensor out);

/// Who must be connected to whom, as ranks of the context.
std::vector<int> ring_partners(int rank, int size);
std::vector<int> halving_partners(int rank, int size);
std::vector<int> all_partners(int rank, int size);

}  // namespace harness::cpu
