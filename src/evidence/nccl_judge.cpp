#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "evidence/nccl_use.h"

namespace harness::evidence {
namespace {

struct Judge {
  const NcclUse& use;
  Answer& out;
  std::vector<const NcclUse::Host*> hosts = use.named_hosts();

  void warnings();
  void missing_ranks();
  void failures();
};

void Judge::warnings() {
  std::map<std::string, std::int64_t> counts;
  std::vector<std::string> order;
  const NcclUse::Warning* cause = nullptr;
  for (const NcclUse::Warning& warning : use.warnings) {
    const std::string name(warning.kind != nullptr ? warning.kind->name : "others");
    if (counts[name] == 0) order.push_back(name);
    counts[name] += warning.count;
    if (warning.kind == nullptr) {
      if (out.notes.size() < 4) out.notes.push_back("NCCL warned: " + warning.text);
      continue;
    }
    if (warning.kind->headline.empty()) {
      if (counts[name] == warning.count) out.notes.push_back(fmt::format("{}: {}", name, warning.kind->remedy));
      continue;
    }
    const bool better = cause == nullptr || (cause->kind->effect && !warning.kind->effect);
    if (better) cause = &warning;
  }
  if (order.empty()) return;
  std::vector<std::string> parts;
  for (const std::string& name : order) parts.push_back(fmt::format("{} {}", name, times(counts[name])));
  out.fact("warnings", join(parts, "; "));
  out.tell("warnings", join_first(parts, 4));
  if (cause == nullptr) return;

  std::string peer = cause->peer, text, suspect = cause->host;
  std::map<std::string, std::set<std::string>> hosts_by_peer;
  std::map<std::string, std::int64_t> by_peer;
  std::int64_t all = 0;
  for (const NcclUse::Warning& warning : use.warnings) {
    if (!cause->kind->of_peer || warning.kind != cause->kind || warning.peer.empty()) continue;
    hosts_by_peer[warning.peer].insert(warning.host);
    by_peer[warning.peer] += warning.count;
    all += warning.count;
  }
  if (all > 0) {
    const auto most = std::ranges::max_element(by_peer, {}, [](const auto& row) { return row.second; });
    peer = most->first;
    const bool late = cause->kind->name == "status=12";
    const char* verb = cause->kind->effect ? "lost the connection to" : "cannot reach";
    std::string share = fmt::format("{} of {}", most->second, all);
    if (most->second == all) share = all == 2 ? "both" : fmt::format("all {}", all);
    suspect = fmt::format("{} (peer of {} {})", peer, all == 1 ? "the" : share,
                          late ? "time-outs" : "connections that failed");
    const std::size_t named_by = hosts_by_peer[peer].size();
    if (named_by > 1)
      text = fmt::format("{} nodes {} one peer, {}", named_by == 2 ? "two" : std::to_string(named_by),
                         late ? "timed out on" : verb, peer);
  }
  const auto filled = [&](std::string_view pattern) {
    std::string filled_text(pattern);
    const auto put = [&](const std::string& mark, const std::string& value) {
      if (const std::size_t at = filled_text.find(mark); at != std::string::npos)
        filled_text.replace(at, mark.size(), value);
    };
    put("{host}", cause->host.empty() ? "a rank" : cause->host);
    put("{peer}", peer.empty() ? "its peer" : peer);
    return filled_text;
  };
  if (text.empty()) text = filled(cause->kind->headline);
  if (!suspect.empty()) {
    out.fact("suspect", suspect);
    out.tell("suspect", suspect);
  }
  out.tell("first", fmt::format("line {}: {}", cause->line, cause->text.substr(0, 100)));
  out.problem(text, filled(cause->kind->remedy));
  if (cause->kind->effect)
    out.notes.push_back(fmt::format("\"{}\" is what the others see: an effect, never a cause", cause->kind->name));
}

void Judge::missing_ranks() {
  for (const auto& [id, communicator] : use.communicators) {
    if (!communicator.started.empty() && communicator.complete.size() < communicator.started.size() &&
        communicator.complete.size() < static_cast<std::size_t>(communicator.ranks)) {
      std::set<std::string> waiting;
      for (const std::int64_t rank : communicator.started) {
        const auto host = communicator.host_of.find(rank);
        if (!communicator.complete.contains(rank) && host != communicator.host_of.end())
          waiting.insert(use.hosts[host->second].name);
      }
      std::vector<std::string> absent;
      for (std::int64_t rank = 0; rank < communicator.ranks; ++rank)
        if (!communicator.host_of.contains(rank)) absent.push_back(std::to_string(rank));
      if (!absent.empty() && std::ssize(absent) <= communicator.ranks / 4)  // else it is a part of a log
        out.problem(fmt::format("{} of {} ranks never began to initialise: {}", absent.size(), communicator.ranks,
                                some_of(absent)),
                    "the others wait; did it start, and does it reach the first rank?");
      out.problem(fmt::format("{} of {} ranks began to initialise and did not end",
                              communicator.started.size() - communicator.complete.size(), communicator.ranks),
                  "the job hung or was stopped there: " + some_of({waiting.begin(), waiting.end()}));
      return;
    }
  }
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr && !largest->is_whole())
    out.notes.push_back(fmt::format("{} of {} ranks are in this log: nothing is said about the others",
                                    largest->host_of.size(), largest->ranks));
}

// "bootstrap.cc:275 -> 2": NCCL hands an error upwards. Where no warning names a cause, the place tells the stage.
void Judge::failures() {
  const bool warned = std::ranges::any_of(
      use.warnings, [](const auto& warning) { return warning.kind != nullptr && !warning.kind->headline.empty(); });
  struct Stage {
    std::string_view file, when, remedy;
  };
  static constexpr std::array<Stage, 6> stages{{
      {"net_ib", "in the InfiniBand or RoCE transport",
       "ibv_devinfo and ibstat on the node; NCCL_IB_HCA, NCCL_IB_GID_INDEX"},
      {"p2p", "while GPUs of a node were connecting", "nvidia-smi topo -p2p r; NCCL_P2P_DISABLE=1 runs without"},
      {"shm", "in shared memory", "/dev/shm: its size, and one IPC namespace for all ranks"},
      {"bootstrap", "while the ranks were meeting over TCP",
       "NCCL_SOCKET_IFNAME with an interface that all nodes share, firewall; does every rank run?"},
      {"socket", "in a TCP connection", "NCCL_SOCKET_IFNAME with an interface that all nodes share, firewall"},
      {"", "in an unknown stage", "NCCL_DEBUG=WARN on all ranks: the first warning names the cause"},
  }};
  static constexpr std::array<std::string_view, 7> results{"no error",          "a CUDA error",        "a system error",
                                                           "an internal error", "an invalid argument", "an invalid use",
                                                           "a lost peer"};
  const std::vector<std::string> failed = names_of(hosts, [](const auto& host) { return host.result > 0; });
  if (warned || failed.empty()) return;
  const auto unknown = std::ranges::find_if(use.warnings, [](const auto& warning) { return warning.kind == nullptr; });
  const auto first = std::ranges::find_if(hosts, [](const auto* host) { return host->result > 0; });
  const auto stage = std::ranges::find_if(
      stages, [&](const Stage& row) { return (*first)->error_path.find(row.file) != std::string::npos; });
  const std::string text = fmt::format("{}: NCCL failed with {} {}", some_of(failed),
                                       results[static_cast<std::size_t>((*first)->result)], stage->when);
  if (unknown == use.warnings.end()) {
    out.problem(text, std::string(stage->remedy));
  } else {
    out.problem(fmt::format("{}: {}", text, unknown->text.substr(0, 120)), "the first warning, of " + unknown->host);
  }
  out.tell("error path", (*first)->error_path);
}

}  // namespace

void judge_nccl(const NcclUse& use, Answer& out) {
  Judge judge{use, out};
  judge.warnings();
  judge_network(use, out);
  judge.failures();
  judge.missing_ranks();
}

}  // namespace harness::evidence
