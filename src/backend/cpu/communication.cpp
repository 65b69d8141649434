#include "backend/cpu/communication.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "backend/cpu/links.h"
#include "base/text.h"
#include "program/count.h"

namespace harness::cpu {
namespace {

// A pattern of connections. Gloo's class and function algorithms never share a context: mixing them has caused hangs.
enum class Links { ring, halving, all };

// Returns the ranks of the context that a rank connects to.
std::vector<int> partners_of(Links links, int rank, int size) {
  const auto meets = [&](int other) {
    if (links == Links::ring) return other == (rank + 1) % size || rank == (other + 1) % size;
    // Halving among another number of ranks than a power of two exchanges data between more of them.
    const bool halves = links == Links::halving && std::has_single_bit(static_cast<unsigned>(size));
    return !halves || std::has_single_bit(static_cast<unsigned>(rank ^ other));
  };
  std::vector<int> out;
  for (int other = 0; other < size; ++other) {
    if (other != rank && meets(other)) out.push_back(other);
  }
  return out;
}

// A context to create. Its name is the same on all its ranks, and contexts are connected in the order of their names.
struct Plan {
  std::vector<int> members;  // job ranks, by rank in the context
  Links links = Links::all;
  bool operator==(const Plan&) const = default;
};

struct Connected {
  Plan plan;
  ContextPointer context;
};

class Kept final : public backend::Connections {
 public:
  std::map<std::string, Connected> contexts;
};

std::string collective_name(program::GroupId group, program::StreamId stream, Links links) {
  return fmt::format("group {:04} stream {:03} links {}", group, stream, static_cast<int>(links));
}

std::string peer_name(program::StreamId stream, int a, int b) {
  return fmt::format("peers {:06} {:06} stream {:03}", std::min(a, b), std::max(a, b), stream);
}

int index_of(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

// Adds the operation and the group to Gloo's errors.
std::function<void()> explained(std::function<void()> call, const std::string& what) {
  if (!call) return {};
  return [call = std::move(call), what] {
    try {
      call();
    } catch (const gloo::Exception& e) {
      throw backend::PeerLost(fmt::format("{}: lost contact with another rank ({})", what, e.what()));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      fail("{}: Gloo failed: {}", what, e.what());
    }
  };
}

std::string text_of(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  for (const int r : ranks) words.push_back(std::to_string(r));
  return join_first(words, 8);
}

}  // namespace

struct Communication::State {
  backend::ExecutableRequest request;
  std::map<std::string, Connected> contexts;
  std::map<std::string, Connected> kept;  // of earlier Programs, whether this one needs them or not
  std::mutex abort_mutex;

  std::vector<int> members_of(program::GroupId id) const {
    const program::Group& group = request.groups.at(id);
    auto members = group.members(request.layout, request.layout.coordinates(request.rank));
    if (members.empty())
      fail("rank {} has an operation of group {}, of which it is no member", request.rank, group.name);
    return members;
  }

  // Only all-reduces use it.
  config::AllReduceAlgorithm algorithm_for(const program::Action& action) const {
    const bool small = program::message_bytes(*request.program, action) <= small_bytes;
    return small ? config::AllReduceAlgorithm::halving_doubling : request.settings.allreduce_algorithm;
  }

  Links links_for(const program::Action& action) const {
    if (std::holds_alternative<program::AllReduce>(action))
      return algorithm_for(action) == config::AllReduceAlgorithm::ring ? Links::ring : Links::halving;
    const bool ring =
        std::holds_alternative<program::AllGather>(action) || std::holds_alternative<program::ReduceScatter>(action);
    return ring ? Links::ring : Links::all;
  }

  int neighbour(const program::Peer& peer) const {
    const int other = request.layout.neighbour(request.rank, peer.axis, peer.offset);
    if (other == request.rank)
      fail("rank {} would send to itself along the {} axis", other, program::name_of(peer.axis));
    return other;
  }

  void plan(const program::Operation& op) {
    if (const program::Peer* peer = program::peer_of(op.action)) {
      const int rank = request.rank, other = neighbour(*peer);
      contexts[peer_name(op.stream, rank, other)].plan = {{std::min(rank, other), std::max(rank, other)}, Links::all};
    } else if (const program::GroupId group = program::group_of(op.action); group >= 0) {
      auto members = members_of(group);
      const Links links = links_for(op.action);
      if (members.size() > 1) contexts[collective_name(group, op.stream, links)].plan = {std::move(members), links};
    }
  }
};

Communication::Communication(const backend::ExecutableRequest& request) : state_(new State) {
  // Gloo writes to sockets whose peer may be gone, which must be an error here and not SIGPIPE.
  if (std::signal(SIGPIPE, SIG_IGN) != SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  State& s = *state_;
  s.request = request;
  for (const auto* list : {&request.program->init, &request.program->step}) {
    for (const program::Operation& op : *list) s.plan(op);
  }
  if (const auto earlier = std::dynamic_pointer_cast<Kept>(request.connections)) s.kept = std::move(earlier->contexts);
  for (auto& [name, connected] : s.contexts) {
    const auto found = s.kept.find(name);
    if (found == s.kept.end()) continue;
    if (found->second.plan == connected.plan) {
      connected.context = found->second.context;
    } else {
      s.kept.erase(found);  // a name stands for one context
    }
  }
}

Communication::~Communication() = default;

std::vector<RendezvousMessage> Communication::publish() {
  State& s = *state_;
  std::vector<RendezvousMessage> out;
  std::shared_ptr<gloo::transport::Device> device;
  for (auto& [name, connected] : s.contexts) {
    auto& [plan, context] = connected;
    if (context) continue;
    if (!device) device = open_device(s.request.local_ranks == s.request.layout.ranks());
    const int size = static_cast<int>(plan.members.size()), rank = index_of(plan.members, s.request.rank);
    const auto partners = partners_of(plan.links, rank, size);
    try {
      context = std::make_shared<LinkedContext>(rank, size, partners, device, s.request.timeout_s);
    } catch (const std::exception& e) {
      fail("rank {} cannot open its {} connections for \"{}\": {} (`ulimit -n` limits the open connections)",
           s.request.rank, partners.size(), name, e.what());
    }
    for (const int p : context->partners()) {
      out.push_back({plan.members[p], name, context->address(p)});
    }
  }
  return out;
}

void Communication::connect(const std::vector<RendezvousMessage>& received, double timeout_s) {
  State& s = *state_;
  std::map<std::pair<std::string, int>, const std::string*> addresses;
  for (const auto& m : received) addresses[{m.key, m.peer}] = &m.bytes;
  try {
    // Gloo's time-out for connecting is five times that of an operation; this thread enforces timeout_s.
    std::mutex mutex;
    std::condition_variable_any stopped;
    const std::jthread watchdog([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      stopped.wait_for(lock, stop, std::chrono::duration<double>(timeout_s), [] { return false; });
      if (!stop.stop_requested()) abort();
    });
    for (const auto& [name, connected] : s.contexts) {
      if (s.kept.contains(name)) continue;
      const auto& [plan, context] = connected;
      for (const int p : context->partners()) {
        const int peer = plan.members[p];
        const auto it = addresses.find({name, peer});
        if (it == addresses.end()) fail("rank {} got no address from rank {} for \"{}\"", s.request.rank, peer, name);
        try {
          context->connect(p, *it->second);
        } catch (const std::exception& e) {
          throw backend::PeerLost(
              fmt::format("rank {} cannot connect to rank {} within {} s ({}); if no rank failed, a process that is "
                          "not of this job may have connected to its port (a port scan?), or set "
                          "HARNESS_GLOO_IFNAME to an interface over which the nodes reach each other",
                          s.request.rank, peer, timeout_s, e.what()));
        }
      }
    }
  } catch (...) {
    abort();
    throw;
  }
}

Transfer Communication::prepare(const program::Operation& op,
                                const std::function<backend::Tensor(const program::View&)>& tensor) {
  State& s = *state_;
  const program::Transferred views = program::transferred_by(op.action);
  const backend::Tensor in = tensor(views.in), out = tensor(views.out);
  ContextPointer context;
  std::string with;
  if (const program::Peer* peer = program::peer_of(op.action)) {
    const int other = s.neighbour(*peer);
    context = s.contexts.at(peer_name(op.stream, s.request.rank, other)).context;
    with = fmt::format("rank {}", other);
  } else {
    const program::GroupId group = program::group_of(op.action);
    const auto members = s.members_of(group);
    if (members.size() > 1) context = s.contexts.at(collective_name(group, op.stream, s.links_for(op.action))).context;
    with = fmt::format("group {} (ranks {})", s.request.groups[group].name, text_of(members));
  }
  Transfer transfer = make_transfer(context, op.action, in, out, s.algorithm_for(op.action));
  const std::string what = fmt::format("{} with {}", program::title(op), with);
  return {explained(std::move(transfer.start), what), explained(std::move(transfer.finish), what)};
}

std::shared_ptr<backend::Connections> Communication::release() {
  State& s = *state_;
  const auto kept = std::make_shared<Kept>();
  const std::lock_guard lock(s.abort_mutex);  // abort() must not reach the contexts once they are the next Program's
  kept->contexts = std::move(s.contexts);
  kept->contexts.merge(s.kept);
  s.contexts.clear();
  return kept;
}

void Communication::abort() noexcept {
  const std::lock_guard lock(state_->abort_mutex);
  for (const auto& [name, connected] : state_->contexts) {
    if (connected.context) connected.context->poison();
  }
}

}  // namespace harness::cpu
