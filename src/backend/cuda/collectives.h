#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// All NCCL communicators of one rank; the only class that uses NCCL. The job's communicator serves the group of all
/// ranks. Splits of it serve every other group of more than one rank and every axis along which neighbours may exchange
/// messages (pipeline, context). Every rank makes the same splits in the same order, member or not. A group of one rank
/// needs no communicator. Reuses those of an earlier Program if it had the same layout, groups and axes.
class Collectives {
 public:
  explicit Collectives(const backend::ExecutableRequest& request);

  /// Returns, on rank 0, NCCL's unique id for every other rank.
  std::vector<RendezvousMessage> publish();
  /// Connects all communicators. Collective over the job. NCCL waits forever for missing ranks, so it connects on its
  /// own thread: past the deadline this throws PeerLost and leaves that thread running until the process ends.
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s);

  /// Hands over the communicators. No communication may be in flight, and only the destructor may be called afterwards.
  std::shared_ptr<backend::Connections> release();

  using Run = std::function<void(Stream)>;
  /// Call after connect(). The communications of a fused group run between group_start() and group_end().
  Run prepare(const program::Action& action, const std::function<backend::Tensor(const program::View&)>& tensor);
  void group_start();
  void group_end();

  /// Returns NCCL's asynchronous error ("remote process exited or there was a network error"), "" if there is none.
  std::string failure() const;

  static std::string version();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with a thread that may outlive this
};

}  // namespace harness::cuda
