// NCCL's operations and groups.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "communicator.h"
#include "core.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {

namespace {

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
thread_local Group group;

std::string check_buffer(const char* name, const void* data, std::size_t bytes, std::size_t alignment, int device) {
  if (bytes == 0) return {};
  if (!on_device(data, bytes, device)) {
    return fmt::format("{} buffer: {}; the communicator's device is {}", name, where(data, bytes), device);
  }
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) return {};
  return fmt::format("{} buffer is not aligned to its elements", name);
}

// Empty, or why the call is wrong.
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

// The calls of one communicator in one group, as one piece of work on the first of their streams; the others wait for
// it, and it for them.
ncclResult_t launch(const std::shared_ptr<Communicator>& communicator, const std::vector<Call>& calls,
                    const std::vector<std::shared_ptr<Stream>>& streams) {
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
  cudaError_t error = cudaSuccess;
  for (std::size_t i = 1; i < streams.size(); ++i) error = std::max(error, order(streams[i], streams[0]));
  error = std::max(error, give(streams[0], Operation{name, issue}));
  for (std::size_t i = 1; i < streams.size(); ++i) error = std::max(error, order(streams[0], streams[i]));
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
    std::vector<std::shared_ptr<Stream>> streams;
    for (const Issued& member : issued) {
      if (member.communicator != communicator) continue;
      calls.push_back(member.call);
      if (std::find(streams.begin(), streams.end(), member.stream) == streams.end()) streams.push_back(member.stream);
    }
    const ncclResult_t error = launch(communicator, calls, streams);
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

bool in_group() {
  return group.depth > 0;
}

}  // namespace harness::fake

using namespace harness::fake;

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
