// NCCL's calls that make and split communicators, and ask after their state.
#include "communicator.h"

#include <fmt/format.h>

#include <cstring>

#include "core.h"
#include "runtime.h"

namespace harness::fake {
namespace {

struct Communicators {
  Registry<ncclComm_t, Communicator> live{0x57, "communicators"};
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Clique>> gatherings;  // by unique id; null until the first rank comes
  int ids = 0;
  std::string last_error;
};

Communicators& communicators() {
  static Communicators& all = *new Communicators;
  [[maybe_unused]] static const bool known = take_part({0,
                                                        [] {
                                                          for (const auto& communicator : communicators().live.all())
                                                            communicator->clique->abort(communicator->rank);
                                                          communicators().live.clear();
                                                          const std::lock_guard lock(communicators().mutex);
                                                          communicators().gatherings.clear();
                                                          communicators().last_error.clear();
                                                        },
                                                        {}});
  return all;
}

// For ncclGetLastError: complained has the clique itself.
void explain(const Clique& clique) {
  std::string why = clique.why();
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error.swap(why);
}

ncclResult_t refuse_in_group(const char* call) {
  if (!in_group()) return ncclSuccess;
  return nccl_failed(ncclInvalidUsage, fmt::format("{} inside of a group: not done here", call));
}

}  // namespace

ncclResult_t nccl_failed(ncclResult_t error, const std::string& why) {
  complain(fmt::format("{} ({})", why, ncclGetErrorString(error)));
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error = why;
  return error;
}

std::shared_ptr<Communicator> usable(ncclComm_t handle, const char* call, ncclResult_t& error) {
  auto communicator = communicators().live.find(handle);
  if (!communicator) {
    error = nccl_failed(ncclInvalidArgument, fmt::format("{}: {} is not a live communicator", call, fmt::ptr(handle)));
    return nullptr;
  }
  error = communicator->clique->error();
  if (error != ncclSuccess) {
    explain(*communicator->clique);
    return nullptr;
  }
  return communicator;
}

}  // namespace harness::fake

using namespace harness::fake;

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(communicators().mutex);
  const std::string text = fmt::format("fake id {}", ++communicators().ids);
  *id = {};
  std::memcpy(id->internal, text.data(), text.size());
  communicators().gatherings[text] = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  constexpr const char* call = "ncclCommInitRankConfig";
  *handle = nullptr;
  if (const auto error = refuse_in_group(call); error != ncclSuccess) return error;
  if (refuse_in_capture(call) != cudaSuccess)
    return nccl_failed(ncclUnhandledCudaError, "ncclCommInitRankConfig: captured");
  auto made = std::make_shared<Communicator>();
  {
    id.internal[NCCL_UNIQUE_ID_BYTES - 1] = 0;
    std::unique_lock lock(communicators().mutex);
    const auto found = communicators().gatherings.find(id.internal);
    if (found == communicators().gatherings.end()) {
      lock.unlock();
      return nccl_failed(ncclInvalidArgument, fmt::format("{}: an id that ncclGetUniqueId did not make", call));
    }
    if (!found->second) found->second = std::make_shared<Clique>(size);
    made->clique = found->second;
  }
  made->rank = rank;
  made->device = current_device();
  if (!made->clique->enter(rank, size, made->device)) return made->clique->error();
  const auto reached = [clique = made->clique.get()] { return clique->complete(); };
  if (!made->clique->wait(rank, reached, "all ranks to initialise")) return made->clique->error();
  *handle = communicators().live.add(made);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* child_handle, ncclConfig_t*) {
  constexpr const char* call = "ncclCommSplit";
  ncclResult_t error = ncclSuccess;
  const auto parent = usable(handle, call, error);
  if (!parent) return error;
  *child_handle = nullptr;
  if ((error = refuse_in_group(call)) != ncclSuccess) return error;
  if (refuse_in_capture(call) != cudaSuccess) return nccl_failed(ncclUnhandledCudaError, "ncclCommSplit: captured");
  const std::uint64_t number = parent->splits++;
  parent->clique->split(parent->rank, number, color, key);
  const auto reached = [clique = parent->clique.get(), number] { return clique->split_met(number); };
  if (!parent->clique->wait(parent->rank, reached, "all ranks to split")) return parent->clique->error();
  const Clique::Child child = parent->clique->child(parent->rank, number);
  if (!child.clique) return ncclSuccess;
  auto made = std::make_shared<Communicator>();
  made->clique = child.clique;
  made->rank = child.rank;
  made->device = parent->device;
  *child_handle = communicators().live.add(made);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  const auto communicator = communicators().live.find(handle);
  if (!communicator || state == nullptr) {
    return nccl_failed(ncclInvalidArgument, "ncclCommGetAsyncError: not a live communicator");
  }
  *state = communicator->clique->error();
  if (*state != ncclSuccess) explain(*communicator->clique);
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) {
  thread_local std::string text;
  const std::lock_guard lock(communicators().mutex);
  text = communicators().last_error;
  return text.c_str();
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const auto communicator = communicators().live.remove(handle);
  if (!communicator) return nccl_failed(ncclInvalidArgument, "ncclCommAbort: not a live communicator");
  communicator->clique->abort(communicator->rank);
  return ncclSuccess;
}

ncclResult_t ncclGetVersion(int* version) {
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
