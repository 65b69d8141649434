#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"

namespace harness::cpu {

/// A communication operation, ready to run. start() posts its send or receive (empty: nothing can be posted early);
/// finish() returns when the operation is done. Both run on one thread and throw PeerLost. All operations of a fused
/// group are started before any is finished.
struct Transfer {
  std::function<void()> start{}, finish{};
};

/// All communicators of one rank: a Gloo context per (group, stream, connection pattern), and a context of two ranks
/// per (point-to-point peer, stream). Only communication.cpp, links.cpp and collectives.cpp call Gloo.
///
/// Reuses contexts that an earlier Communication of the process released if they connect the same ranks.
///
/// An all-reduce of up to `small_bytes` is latency-bound and uses halving-doubling; longer ones use the requested
/// algorithm. A group of one rank needs no communicator.
class Communication {
 public:
  static constexpr std::int64_t small_bytes = 4096;

  explicit Communication(const backend::ExecutableRequest& request);
  ~Communication();

  std::vector<RendezvousMessage> publish();
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s);
  /// Call after publish(), in the order of the operation lists.
  Transfer prepare(const program::Operation& op, const std::function<backend::Tensor(const program::View&)>& tensor);
  /// Returns the contexts for a later Communication. All ranks must have finished every operation; afterwards, only the
  /// destructor may be called.
  std::shared_ptr<backend::Connections> release();
  /// Makes all pending and later transfers fail at once. May be called from any thread, any number of times.
  void abort() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace harness::cpu
