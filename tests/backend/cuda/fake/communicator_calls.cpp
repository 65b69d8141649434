// NCCL's calls that tell of communicators and end them, its version and its words.
#include "communicator.h"

using namespace harness::fake;

ncclResult_t ncclCommCount(ncclComm_t handle, int* count) {
  ncclResult_t error = ncclSuccess;
  const auto communicator = usable(handle, "ncclCommCount", error);
  if (communicator) *count = communicator->clique->size;
  return error;
}

ncclResult_t ncclCommUserRank(ncclComm_t handle, int* rank) {
  ncclResult_t error = ncclSuccess;
  const auto communicator = usable(handle, "ncclCommUserRank", error);
  if (communicator) *rank = communicator->rank;
  return error;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  ncclResult_t error = ncclSuccess;
  const auto communicator = usable(handle, "ncclCommFinalize", error);
  if (!communicator) return error;
  Clique* clique = communicator->clique.get();
  clique->finalize(communicator->rank);
  const auto reached = [clique, rank = communicator->rank] { return clique->quiet(rank); };
  {
    const std::lock_guard lock(communicator->mutex);
    communicator->finalized = true;
    if (!communicator->blocking) {
      communicator->start(reached, {});
      return ncclInProgress;
    }
  }
  return clique->wait(communicator->rank, reached, "all ranks to finalize") ? ncclSuccess : clique->error();
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const auto communicator = find_communicator(handle);
  if (!communicator) return nccl_failed(ncclInvalidArgument, "ncclCommDestroy: not a live communicator");
  {
    const std::lock_guard lock(communicator->mutex);
    if (communicator->in_progress) {
      return nccl_failed(ncclInvalidArgument, "ncclCommDestroy before the previous operation returned ncclSuccess");
    }
  }
  remove_communicator(handle);
  Clique* clique = communicator->clique.get();
  if (communicator->finalized || clique->error() != ncclSuccess) return clique->error();
  clique->finalize(communicator->rank);
  const auto reached = [clique, rank = communicator->rank] { return clique->quiet(rank); };
  return clique->wait(communicator->rank, reached, "all ranks to destroy") ? ncclSuccess : clique->error();
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const auto communicator = remove_communicator(handle);
  if (!communicator) return nccl_failed(ncclInvalidArgument, "ncclCommAbort: not a live communicator");
  communicator->clique->abort(communicator->rank);
  return ncclSuccess;
}

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}
