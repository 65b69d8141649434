#pragma once

#include <memory>

#include "backend/cpu/communication.h"
#include "backend/cpu/links.h"
#include "config/settings.h"

// Private to the sources that speak Gloo.
namespace harness::cpu {

using ContextPointer = std::shared_ptr<LinkedContext>;

// Transfers over a context that is connected, or will be. They keep it alive. Exceptions are Gloo's: communication.cpp
// translates them.

/// With AllReduceAlgorithm::halving_doubling it must be made in the same order on all ranks.
Transfer make_all_reduce(const ContextPointer& context, backend::Tensor in, backend::Tensor out,
                         program::Reduction reduction, config::AllReduceAlgorithm algorithm);
/// Ring.
Transfer make_reduce_scatter(const ContextPointer& context, backend::Tensor in, backend::Tensor out,
                             program::Reduction reduction);
/// Ring.
Transfer make_all_gather(const ContextPointer& context, backend::Tensor in, backend::Tensor out);
Transfer make_all_to_all(const ContextPointer& context, backend::Tensor in, backend::Tensor out);
/// To or from `peer`, the other rank of a context of two.
Transfer make_send(const ContextPointer& context, backend::Tensor data, int peer);
Transfer make_receive(const ContextPointer& context, backend::Tensor data, int peer);
/// Any collective in a group of one rank.
Transfer make_copy(backend::Tensor in, backend::Tensor out);

/// Who must be connected to whom, as ranks of the context.
std::vector<int> ring_partners(int rank, int size);
std::vector<int> halving_partners(int rank, int size);
std::vector<int> all_partners(int rank, int size);

}  // namespace harness::cpu
