#include "backend/cuda/collectives.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <thread>

#include "base/text.h"

namespace harness::cuda {
namespace {

constexpr const char* id_key = "nccl_unique_id";

// NCCL's text for the status, with its message about the last error.
std::string words_for(ncclResult_t status) {
  const char* more = ncclGetLastError(nullptr);
  return fmt::format("{}{}{}", ncclGetErrorString(status), more && *more ? ": " : "", more ? more : "");
}

void check(ncclResult_t status, const std::string& what) {
  if (status == ncclSuccess) return;
  const std::string text = fmt::format("{}: NCCL failed: {}", what, words_for(status));
  if (status == ncclRemoteError) throw backend::PeerLost(text);
  throw Error(text);
}

ncclDataType_t type_of(const backend::Tensor& t) {
  switch (t.type) {
    case program::DType::f32:
      return ncclFloat32;
    case program::DType::bf16:
      return ncclBfloat16;
    case program::DType::f16:
      return ncclFloat16;
    case program::DType::i32:
      return ncclInt32;
    case program::DType::e4m3:
    case program::DType::e5m2:
    case program::DType::e8m0:
      break;
  }
  fail("NCCL has no word for this type of elements");
}

ncclRedOp_t operation_of(program::Reduction reduction) {
  return reduction == program::Reduction::max ? ncclMax : ncclSum;
}

// A Program without communication needs no other rank, whatever its layout: it is not connected.
bool communicates(const program::Program& program) {
  const auto any = [](const std::vector<program::Operation>& list) {
    return std::ranges::any_of(list, [](const program::Operation& op) { return program::is_communication(op.action); });
  };
  return any(program.init) || any(program.step);
}

// The axes along which a Program sends to neighbours. Ranks open these communicators together, so the Programs of all
// roles must send along the same axes; those of pipeline stages and context rings are always open.
std::vector<program::Axis> neighbour_axes(const program::Program& program) {
  std::vector<program::Axis> axes{program::Axis::pipeline, program::Axis::context};
  const auto add = [&](const program::Peer& peer) {
    if (std::ranges::find(axes, peer.axis) == axes.end()) axes.push_back(peer.axis);
  };
  for (const auto* list : {&program.init, &program.step}) {
    for (const program::Operation& op : *list) {
      if (const program::Peer* peer = program::peer_of(op.action)) add(*peer);
    }
  }
  std::sort(axes.begin() + 2, axes.end());  // the same order on all ranks
  return axes;
}

// Sets up NCCL for several ranks on one GPU, which it otherwise refuses: each rank poses as a host of its own and
// communicates through sockets. Keeps environment variables that are already set; call before the first NCCL call.
void pretend_own_host(int rank) {
  ::setenv("NCCL_HOSTID", fmt::format("harness-rank-{}", rank).c_str(), 0);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  ::setenv("NCCL_IB_DISABLE", "1", 0);
  ::setenv("NCCL_NET", "Socket", 0);      // otherwise a plugin takes precedence
  ::setenv("NCCL_MNNVL_ENABLE", "0", 0);  // by its fabric id, one GPU looks like a multi-node NVLink domain
  ::setenv("NCCL_RAS_ENABLE", "0", 0);
  ::setenv("NCCL_MAX_CTAS", "2", 0);
}

}  // namespace

struct Collectives::State final : backend::Connections {
  program::Layout layout;
  std::vector<program::Group> groups;
  std::vector<program::Axis> axes;  // of point-to-point messages
  int rank = 0, ranks = 1;
  ncclUniqueId id{};
  ncclComm_t job = nullptr;
  std::map<std::string, ncclComm_t> communicators;
  bool connected = false;

  /// Aborts the communicators without waiting for other ranks. The connecting thread keeps them alive while it runs.
  ~State() override {
    for (const auto& [name, communicator] : communicators) static_cast<void>(ncclCommAbort(communicator));
    if (job != nullptr) static_cast<void>(ncclCommAbort(job));
  }

  bool connects_like(const State& other) const {
    return layout == other.layout && groups == other.groups && axes == other.axes && rank == other.rank &&
           ranks == other.ranks;
  }

  static std::string axis_name(program::Axis axis) { return fmt::format("axis {}", program::name_of(axis)); }
  static std::string group_name(program::GroupId id) { return fmt::format("group {}", id); }

  // The group that uses the job's communicator: the one over all axes, else the first of all ranks, if its members are
  // in rank order. Only one group may: another may run on a different stream, and a rank does not know the streams in
  // the Programs of other roles.
  std::size_t group_of_job() const {
    std::size_t first = groups.size();
    for (std::size_t g = groups.size(); g-- > 0;) {
      if (groups[g].size(layout) != ranks || !groups[g].pipeline_stages.empty()) continue;
      if (!std::ranges::is_sorted(groups[g].members(layout, layout.coordinates(rank)))) continue;
      if (groups[g].axes == program::AxisSet::all()) return g;
      first = g;
    }
    return first;
  }

  void connect() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    check(ncclCommInitRankConfig(&job, ranks, id, rank, &config), "connecting to the job's ranks");
    // `members`: of this rank's instance, in order; empty if this rank is not a member.
    const auto split = [&](const std::string& name, const std::vector<int>& members) {
      const auto me = std::ranges::find(members, rank);
      const bool member = me != members.end();
      ncclComm_t communicator = nullptr;
      check(ncclCommSplit(job, member ? members.front() : NCCL_SPLIT_NOCOLOR, static_cast<int>(me - members.begin()),
                          &communicator, nullptr),
            "splitting off " + name);
      if (member) communicators[name] = communicator;
    };
    const program::Coordinates here = layout.coordinates(rank);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].size(layout) < 2 || g == group_of_job()) continue;
      split(group_name(static_cast<program::GroupId>(g)),
            groups[g].contains(here) ? groups[g].members(layout, here) : std::vector<int>{});
    }
    for (const program::Axis axis : axes) {
      if (layout[axis] > 1)
        split(axis_name(axis), program::Group{"", program::AxisSet::of({axis}), {}}.members(layout, here));
    }
  }

  ncclComm_t communicator(const std::string& name) const {
    if (name == group_name(static_cast<program::GroupId>(group_of_job()))) return job;
    const auto it = communicators.find(name);
    if (it == communicators.end()) fail("rank {} has an operation of {}, of which it is no member", rank, name);
    return it->second;
  }
};

Collectives::Collectives(const backend::ExecutableRequest& request) : state_(std::make_shared<State>()) {
  state_->layout = request.layout;
  state_->groups = request.groups;
  state_->axes = neighbour_axes(*request.program);
  state_->rank = request.rank;
  state_->ranks = communicates(*request.program) ? request.layout.ranks() : 1;
  const auto earlier = std::dynamic_pointer_cast<State>(request.connections);
  if (earlier != nullptr && earlier->connects_like(*state_)) state_ = earlier;
  // During graph capture, NCCL registers the buffers' whole allocation with the network adapter and with the peers
  // (ncclNetGraphRegisterBuffer, ncclIpcGraphRegisterBuffer), and data take another path. Without registration a
  // captured step communicates as an eager one does, and `cuda_graph` changes only one thing. `env` may turn it on.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
  if (request.share_devices) pretend_own_host(request.rank);
}

std::shared_ptr<backend::Connections> Collectives::release() {
  return std::move(state_);
}

std::vector<RendezvousMessage> Collectives::publish() {
  if (state_->rank != 0 || state_->ranks < 2 || state_->connected) return {};
  check(ncclGetUniqueId(&state_->id), "making an address for the job's ranks to meet at");
  std::vector<RendezvousMessage> messages;
  for (int r = 1; r < state_->ranks; ++r) {
    messages.push_back({r, id_key, std::string(state_->id.internal, sizeof state_->id.internal)});
  }
  return messages;
}

void Collectives::connect(const std::vector<RendezvousMessage>& received, double timeout_s) {
  if (state_->ranks < 2 || state_->connected) return;
  if (state_->rank != 0) {
    const auto it = std::ranges::find(received, id_key, &RendezvousMessage::key);
    if (it == received.end() || it->bytes.size() != sizeof state_->id.internal) {
      fail("rank {} was told no address to meet the others at", state_->rank);
    }
    std::memcpy(state_->id.internal, it->bytes.data(), it->bytes.size());
  }
  const int device = current_device();
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([state = state_, device, promise = std::move(promise)]() mutable {
    std::exception_ptr problem;
    try {
      set_device(device);
      state->connect();
    } catch (...) {
      problem = std::current_exception();
    }
    state->connected = true;
    state.reset();  // before the caller can drop its own reference
    problem ? promise.set_exception(problem) : promise.set_value();
  }).detach();
  if (done.wait_for(std::chrono::duration<double>(timeout_s)) == std::future_status::timeout) {
    throw backend::PeerLost(
        fmt::format("NCCL did not connect rank {} with the others within {:.0f} s: at least one did not come",
                    state_->rank, timeout_s));
  }
  done.get();
}

Collectives::Run Collectives::prepare(const program::Action& action,
                                      const std::function<backend::Tensor(const program::View&)>& tensor) {
  const State& s = *state_;
  const std::string what(program::name_of(action));
  const program::Transferred views = program::transferred_by(action);
  const backend::Tensor in = tensor(views.in), out = tensor(views.out);
  if (const program::Peer* peer = program::peer_of(action)) {
    ncclComm_t c = s.communicator(State::axis_name(peer->axis));
    const int other = s.layout.coordinates(s.layout.neighbour(s.rank, peer->axis, peer->offset))[peer->axis];
    if (std::holds_alternative<program::Send>(action)) {
      return [=](Stream to) { check(ncclSend(in.data, in.count, type_of(in), other, c, to), what); };
    }
    return [=](Stream to) { check(ncclRecv(in.data, in.count, type_of(in), other, c, to), what); };
  }

  const program::GroupId group = program::group_of(action);
  const int members = s.groups.at(group).size(s.layout);
  if (members == 1) {  // any collective is then a copy
    if (in.data == out.data) return [](Stream) {};
    return [=](Stream to) { copy_within(to, out.data, in.data, in.bytes()); };
  }
  ncclComm_t c = s.communicator(State::group_name(group));
  const ncclDataType_t type = type_of(in);
  if (const auto* op = std::get_if<program::AllReduce>(&action)) {
    return [=, by = operation_of(op->reduction)](Stream to) {
      check(ncclAllReduce(in.data, out.data, out.count, type, by, c, to), what);
    };
  }
  if (std::holds_alternative<program::AllGather>(action)) {
    return [=](Stream to) { check(ncclAllGather(in.data, out.data, in.count, type, c, to), what); };
  }
  if (const auto* op = std::get_if<program::ReduceScatter>(&action)) {
    return [=, by = operation_of(op->reduction)](Stream to) {
      check(ncclReduceScatter(in.data, out.data, out.count, type, by, c, to), what);
    };
  }
  return [=](Stream to) {  // an all-to-all
    const std::size_t part = in.count / members;
    const auto bytes = static_cast<std::int64_t>(part) * program::size_of(in.type);
    check(ncclGroupStart(), what);
    for (int peer = 0; peer < members; ++peer) {
      check(ncclSend(in.as<std::byte>() + peer * bytes, part, type, peer, c, to), what);
      check(ncclRecv(out.as<std::byte>() + peer * bytes, part, type, peer, c, to), what);
    }
    check(ncclGroupEnd(), what);
  };
}

void Collectives::group_start() {
  check(ncclGroupStart(), "starting a group of communications");
}

void Collectives::group_end() {
  check(ncclGroupEnd(), "a group of communications");
}

std::string Collectives::failure() const {
  const auto ask = [](ncclComm_t c) -> std::string {
    ncclResult_t status = ncclSuccess;
    if (ncclCommGetAsyncError(c, &status) != ncclSuccess || status == ncclSuccess || status == ncclInProgress)
      return "";
    return words_for(status);
  };
  if (state_->job == nullptr) return "";
  std::string text = ask(state_->job);
  for (const auto& [name, c] : state_->communicators) {
    if (text.empty()) text = ask(c);
  }
  return text;
}

std::string Collectives::version() {
  int v = 0;
  static_cast<void>(ncclGetVersion(&v));
  return v == 0 ? "" : print_version(v);
}

}  // namespace harness::cuda
