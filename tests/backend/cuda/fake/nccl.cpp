// The NCCL functions: communicators, operations and groups.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "clique.h"
#include "core.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {
namespace {

// One rank's end of a communicator. All are blocking: the backend creates no others.
struct Communicator {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  std::uint64_t splits = 0;
};

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

// Keeps the clique's error for ncclGetLastError. The clique has complained already.
void explain(const Clique& clique) {
  std::string why = clique.why();
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error.swap(why);
}

ncclResult_t nccl_failed(ncclResult_t error, const std::string& why) {
  complain(fmt::format("{} ({})", why, ncclGetErrorString(error)));
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error = why;
  return error;
}

// Returns the communicator of a handle if it is usable; otherwise null, with the reason in `error`.
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

struct Issued {
  std::shared_ptr<Communicator> communicator;
  Call call;
  std::shared_ptr<Stream> stream;
};
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Issued> issued;
};
thread_local Group group;  // between ncclGroupStart and ncclGroupEnd

ncclResult_t refuse_in_group(const char* call) {
  if (group.depth == 0) return ncclSuccess;
  return nccl_failed(ncclInvalidUsage, fmt::format("{} inside of a group: not done here", call));
}

std::string check_buffer(const char* name, const void* data, std::size_t bytes, std::size_t alignment, int device) {
  if (bytes == 0) return {};
  if (!on_device(data, bytes, device)) {
    return fmt::format("{} buffer: {}; the communicator's device is {}", name, where(data, bytes), device);
  }
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) return {};
  return fmt::format("{} buffer is not aligned to its elements", name);
}

// Returns why the call is invalid; empty if it is valid.
std::string check(const Call& call, const Communicator& communicator) {
  const int size = communicator.clique->size;
  const int rank = communicator.rank;
  const std::size_t width = size_of(call.type);
  if (width == 0) return fmt::format("data type {} is not done here", static_cast<int>(call.type));
  if (call.op != ncclSum && call.op != ncclMax)
    return fmt::format("operation {} is not done here", static_cast<int>(call.op));
  if (call.root < 0 || call.root >= size) return fmt::format("root or peer {} of {} ranks", call.root, size);
  const std::size_t sends = call.send_bytes(size);
  const std::size_t receives = call.recv_bytes(size);
  std::string wrong = check_buffer("send", call.send, sends, width, communicator.device);
  if (wrong.empty()) wrong = check_buffer("receive", call.recv, receives, width, communicator.device);
  if (!wrong.empty() || sends == 0 || receives == 0) return wrong;
  const auto* from = static_cast<const char*>(call.send);
  const auto* to = static_cast<const char*>(call.recv);
  if (from >= to + receives || to >= from + sends) return {};
  const std::size_t part = static_cast<std::size_t>(rank) * call.count * width;
  bool in_place = from == to;
  if (call.function == Function::all_gather) in_place = from == to + part;
  if (call.function == Function::reduce_scatter) in_place = to == from + part;
  return in_place ? std::string{} : "the buffers overlap, but not as the documentation has it for in place";
}

// Enqueues the calls of one communicator in one group as one operation on their stream.
ncclResult_t launch(const std::shared_ptr<Communicator>& communicator, const std::vector<Call>& calls,
                    const std::shared_ptr<Stream>& stream) {
  const auto issue = [clique = communicator->clique, rank = communicator->rank, device = communicator->device, calls] {
    return [clique, rank, device, calls, unit = clique->issue(rank, calls)] {
      for (const Call& call : calls) {
        const std::size_t sends = call.send_bytes(clique->size);
        const std::size_t receives = call.recv_bytes(clique->size);
        if ((sends == 0 || on_device(call.send, sends)) && (receives == 0 || on_device(call.recv, receives))) continue;
        const std::string why = fmt::format("{} of rank {} ran after its memory was freed", call.text(), rank);
        break_device(device, cudaErrorIllegalAddress, why);
        clique->break_up(ncclUnhandledCudaError, why);
      }
      clique->perform(rank, unit, calls);
    };
  };
  const std::string name = fmt::format("nccl {}", calls[0].text());
  const cudaError_t error = give(stream, Operation{name, issue});
  return error == cudaSuccess ? ncclSuccess : nccl_failed(ncclUnhandledCudaError, name);
}

ncclResult_t launch_all(const std::vector<Issued>& issued) {
  std::vector<std::shared_ptr<Communicator>> order_of_first_call;
  for (const Issued& member : issued) {
    if (std::find(order_of_first_call.begin(), order_of_first_call.end(), member.communicator) ==
        order_of_first_call.end()) {
      order_of_first_call.push_back(member.communicator);
    }
  }
  ncclResult_t result = ncclSuccess;
  for (const auto& communicator : order_of_first_call) {
    std::vector<Call> calls;
    for (const Issued& member : issued) {
      if (member.stream != issued.front().stream)
        return nccl_failed(ncclInvalidUsage, "a group on several streams is not done here");
      if (member.communicator == communicator) calls.push_back(member.call);
    }
    const ncclResult_t error = launch(communicator, calls, issued.front().stream);
    if (result == ncclSuccess) result = error;
  }
  return result;
}

ncclResult_t prepare(const Call& call, ncclComm_t handle, cudaStream_t stream_handle, Issued& issued) {
  ncclResult_t error = ncclSuccess;
  const std::string caller = fmt::format("nccl{}", name_of(call.function));
  issued.communicator = usable(handle, caller.c_str(), error);
  if (!issued.communicator) return error;
  const std::string wrong = check(call, *issued.communicator);
  if (!wrong.empty()) return nccl_failed(ncclInvalidArgument, fmt::format("{}: {}", caller, wrong));
  issued.stream = find_stream(stream_handle, caller.c_str());
  if (!issued.stream) return nccl_failed(ncclUnhandledCudaError, fmt::format("{}: the stream", caller));
  if (issued.stream->device != issued.communicator->device) {
    return nccl_failed(ncclUnhandledCudaError, fmt::format("{}: the stream is of device {}, the communicator of {}",
                                                           caller, issued.stream->device, issued.communicator->device));
  }
  issued.call = call;
  return ncclSuccess;
}

ncclResult_t operate(const Call& call, ncclComm_t handle, cudaStream_t stream) {
  Issued issued;
  const ncclResult_t error = prepare(call, handle, stream, issued);
  if (group.depth == 0) return error == ncclSuccess ? launch_all({issued}) : error;
  if (error == ncclSuccess) group.issued.push_back(issued);
  if (group.error == ncclSuccess) group.error = error;
  return error;
}

}  // namespace

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

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return nccl_failed(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  Group ended;
  std::swap(ended, group);
  return ended.error == ncclSuccess ? launch_all(ended.issued) : ended.error;
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return operate({Function::all_reduce, send, recv, count, type, op, 0}, comm, stream);
}
ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return operate({Function::all_gather, send, recv, count, type, ncclSum, 0}, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return operate({Function::reduce_scatter, send, recv, count, type, op, 0}, comm, stream);
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return operate({Function::send, send, nullptr, count, type, ncclSum, peer}, comm, stream);
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return operate({Function::recv, nullptr, recv, count, type, ncclSum, peer}, comm, stream);
}
