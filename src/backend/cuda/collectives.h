#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// All NCCL communicators of one rank, and the only class that knows NCCL: the job's, which serves the group of all
/// ranks; one per other group of more than one rank by splitting it, and one per axis that messages between neighbours
/// may take (pipeline, context). Every rank makes the same splits in the same order, whether it is a member or not. A
/// group of one rank needs no communicator. Those of an earlier Program are used again if it had the same layout,
/// groups and axes.
class Collectives {
 public:
  explicit Collectives(const backend::ExecutableRequest& request);

  /// On rank 0: NCCL's unique id for every other rank.
  std::vector<RendezvousMessage> publish();
  /// Collective over the job. NCCL waits for missing ranks without end, so it connects on a thread of its own: past
  /// the deadline this throws PeerLost, and the thread is left to the end of the process.
  void connect(const std::vector<RendezvousMessage>& received, double timeout_s);

  /// Afterwards nothing but the destructor may be called. Nothing may be in flight.
  std::shared_ptr<backend::Connections> release();

  using Run = std::function<void(Stream)>;
  /// After connect(). The communications of a fused group are run between group_start() and group_end().
  Run prepare(const program::Action& action, const std::function<backend::Tensor(const program::View&)>& tensor);
  void group_start();
  void group_end();

  /// The error that NCCL found meanwhile ("remote process exited or there was a network error"), "" if nothing.
  std::string failure() const;

  static std::string version();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with a thread that may outlive this
};

}  // namespace harness::cuda
