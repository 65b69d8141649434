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

// Private to the sources that call Gloo (links.cpp, collectives.cpp, communication.cpp).
namespace harness::cpu {

/// Gloo takes the first process that connects for the peer. So each end of a connection draws a secret, which the
/// supervisors carry to the other end, and sends it over the new connection. Gloo does not expose its sockets, so a man
/// in the middle who forwards the traffic is not detected.
using LinkSecret = std::array<char, 16>;

/// Opens the TCP interface that peers reach this rank at: $HARNESS_GLOO_IFNAME if set; else loopback if all ranks are
/// on one node; else the address of the host's name; if that is loopback or not an address of this host, the first
/// interface that is not loopback, if any. One I/O thread serves all contexts.
std::shared_ptr<gloo::transport::Device> open_device(bool one_node);

/// A Gloo context that connects only to `partners`, by addresses that its owner exchanges. A ring of n ranks so needs
/// two connections per rank and not n - 1.
class LinkedContext : public gloo::Context {
 public:
  LinkedContext(int rank, int size, const std::vector<int>& partners, std::shared_ptr<gloo::transport::Device> device,
                double timeout_s);

  const std::vector<int>& partners() const { return partners_; }

  /// Receive memory for intermediate results, shared by the operations of this context, which run one after another.
  /// Each operation reserves its size before any of them runs.
  void reserve_scratch(std::size_t bytes) { scratch_.resize(std::max(scratch_.size(), bytes)); }
  char* scratch() { return scratch_.data(); }

  /// Returns the address that the partner connects to, with this end's secret. No other process may see it. Throws
  /// Error if the system has no random numbers.
  std::string address(int partner);
  /// Blocks until connected. Ranks must connect all their pairs in one global order. Throws if the other end does not
  /// send the partner's secret.
  void connect(int partner, const std::string& address);
  /// Makes every pending and later operation on this context fail, here and, because the connections close, at peers.
  /// May be called from any thread.
  void poison() noexcept;

 private:
  std::vector<int> partners_;
  std::map<int, LinkSecret> secrets_;  // this end's, by partner
  std::vector<char> scratch_;
};

using ContextPointer = std::shared_ptr<LinkedContext>;

/// Makes the transfer of a communication. `context`: that of its group, or of the two ranks of a message, which is, or
/// will be, connected; nullptr: a group of one rank. The transfer keeps it alive and throws Gloo's exceptions, which
/// communication.cpp translates. `algorithm`: of an all-reduce; with halving_doubling, all ranks must make their
/// transfers in the same order. Reduce-scatters and all-gathers are rings.
Transfer make_transfer(const ContextPointer& context, const program::Action& action, backend::Tensor in,
                       backend::Tensor out, config::AllReduceAlgorithm algorithm);

}  // namespace harness::cpu
