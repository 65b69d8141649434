#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"

namespace harness::cpu {

/// One communication operation made ready. start() posts what can be posted (empty: nothing can), finish() returns when
/// the operation is done; both on one thread. All operations of a fused group are started before any is finished. Both
/// throw PeerLost.
struct Transfer {
  std::function<void()> start{}, finish{};
  explicit operator bool() const { return finish != nullptr; }
};

/// All communicators of one rank: one Gloo context per (group, stream, pattern of connections), one of two ranks per
/// point-to-point peer and stream. The only place that knows Gloo, together with links.cpp and collectives.cpp.
///
/// Contexts that an earlier Communication of the process released are used again where they join the same ranks.
///
/// all_reduce of messages up to `small_bytes` is bound by latency and goes by halving and doubling; longer ones by the
/// algorithm asked for. A group of one rank needs no communicator.
class Communication {
 public:
  static constexpr std::int64_t small_bytes = 4096;

  explicit Communication(const backend::ExecutableRequest& request);
  ~Communication();

  std::vector<RendezvousMessage> publish();
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s);
  /// After publish(), in the order of the operation lists.
  Transfer prepare(const program::Operation& op, const std::function<backend::Tensor(const program::View&)>& tensor);
  /// Afterwards nothing but the destructor may be called. Every operation must be over on all ranks.
  std::shared_ptr<backend::Connections> release();
  /// Makes everything pending and to come fail at once. From any thread, any number of times.
  void abort() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace harness::cpu
