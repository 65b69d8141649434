// One rank's end of a communicator. All are blocking: the backend makes no others.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

#include "clique.h"

namespace harness::fake {

struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  std::uint64_t splits = 0;
};

// The communicator of a handle if it can be used now; else null, and why in `error`.
std::shared_ptr<Communicator> usable(ncclComm_t handle, const char* call, ncclResult_t& error);
bool in_group();  // the calling thread, between ncclGroupStart and ncclGroupEnd
ncclResult_t nccl_failed(ncclResult_t error, const std::string& why);

}  // namespace harness::fake
