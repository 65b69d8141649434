// One rank's end of a communicator.
#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "clique.h"

namespace harness::fake {

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  std::uint64_t splits = 0;

  // A non-blocking call under way: done when `reached` holds (asked through the clique) and the caller has asked
  // `polls` times more; then `finish` is called. Guarded by `mutex`.
  std::mutex mutex;
  bool in_progress = false;
  int polls = 0;
  std::function<bool()> reached;
  std::function<void()> finish;
  std::chrono::steady_clock::time_point since;
  bool finalized = false;

  void start(std::function<bool()> until, std::function<void()> then);
};

// In whatever state; null: not a live one.
std::shared_ptr<Communicator> find_communicator(ncclComm_t handle);
std::shared_ptr<Communicator> remove_communicator(ncclComm_t handle);
// The communicator of a handle if it can be used now; else null, and why in `error`.
std::shared_ptr<Communicator> usable(ncclComm_t handle, const char* call, ncclResult_t& error);
bool in_group();  // the calling thread, between ncclGroupStart and ncclGroupEnd
ncclResult_t nccl_failed(ncclResult_t error, const std::string& why);

}  // namespace harness::fake
