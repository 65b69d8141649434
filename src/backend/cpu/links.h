#pragma once

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/communication.h"
#include "config/settings.h"

// Private to the sources that speak Gloo (links.cpp, collectives.cpp, communication.cpp).
namespace harness::cpu {

/// Gloo takes whoever connects first for the peer. So each end of a connection draws a secret, which the supervisors
/// carry to the other end, and shows it there when they are connected. Gloo shows nobody its sockets: who stands
/// between two ranks and passes on what they say is not found.
using LinkSecret = std::array<char, 16>;

/// The TCP interface this rank is reached at: $HARNESS_GLOO_IFNAME if set; else loopback for the ranks of one node;
/// else the address of the host's name; where that is a loopback address, the first other interface, if there is any.
/// One I/O thread serves all contexts.
std::shared_ptr<gloo::transport::Device> open_device(bool one_node);

/// A Gloo context whose pairs are connected with addresses that somebody else carries: only those to `partners`, so
/// that a ring of n ranks needs two connections each and not n - 1.
class LinkedContext : public gloo::Context {
 public:
  LinkedContext(int rank, int size, const std::vector<int>& partners, std::shared_ptr<gloo::transport::Device> device,
                double timeout_s);

  const std::vector<int>& partners() const { return partners_; }

  /// Memory for what is received on the way, shared by the operations of this context, which run one after another:
  /// each reserves what it needs before any of them runs.
  void reserve_scratch(std::size_t bytes) { scratch_.resize(std::max(scratch_.size(), bytes)); }
  char* scratch() { return scratch_.data(); }

  /// Where the partner connects to, and this end's secret. Nobody else may see it. Throws Error where the system has no
  /// random numbers.
  std::string address(int partner);
  /// Blocks until connected. Ranks must connect all their pairs in one global order. Throws if whoever is at the other
  /// end does not show the partner's secret.
  void connect(int partner, const std::string& address);
  /// Makes every pending and later operation on this context fail, here and, since the connections close, at peers.
  /// From any thread.
  void poison() noexcept;

 private:
  std::vector<int> partners_;
  std::map<int, LinkSecret> secrets_;  // this end's, by partner
  std::vector<char> scratch_;
};

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
Transfer make_message(const ContextPointer& context, backend::Tensor data, int peer, bool sends);
/// Any collective in a group of one rank.
Transfer make_copy(backend::Tensor in, backend::Tensor out);

}  // namespace harness::cpu
