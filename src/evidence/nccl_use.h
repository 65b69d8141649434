#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"
#include "nccl/log.h"

namespace harness::evidence {

/// A line that NCCL logs with WARN and that people ask about.
struct NcclWarningKind {
  std::string_view name;      // "status=12"
  std::string_view pattern;   // alternatives between '|', each of parts between '&' that must all be there
  std::string_view headline;  // {host} and {peer} are replaced; the cause in one clause
  std::string_view remedy;
  bool effect = false;   // something else failed before: never a cause
  bool of_peer = false;  // the suspect is the peer that the line names, not the host that logged it
};

/// NCCL in a job, from the logs of any of its ranks.
struct NcclUse {
  /// Ends of connections over a network that could use GPUDirect RDMA, and those that use it.
  struct Ends {
    std::int64_t all = 0, direct = 0;
  };
  /// Ends of connections of a GPU within its host: P2P; SHM.
  struct Gpu {
    std::int64_t by_peer = 0, through_memory = 0;
  };
  struct Host {
    std::string name;                      // "": lines without a host
    nccl::Observed seen = {};              // of all its ranks
    std::set<int> adapters = {};           // by NCCL's number, of connections over the network
    std::map<std::string, Gpu> gpus = {};  // "GPU 0", "GPU 1b000"
    Ends sends = {}, receives = {};
    std::string direct_reason = {};  // "8 > 5": the distance over its limit, why GPUDirect RDMA is off
    std::int64_t inner_network = 0;  // connections over the network between two ranks of this host
    bool networked = false;          // it has connections over a network

    std::size_t devices() const;  // network devices that NCCL lists; 0: it does not
    bool on_sockets() const;      // and on nothing else
    bool uses_direct() const { return sends.direct + receives.direct > 0; }
    std::string direct_text() const;  // "sends and receives with it"; "" without connections over such a network
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;  // ranks: the sender, the receiver
  struct Connections {
    std::map<Pair, std::set<int>> crossings = {};  // over the network, and the adapters that the sender uses
    std::set<Pair> in_rings = {};                  // neighbours, where NCCL says its rings
  };
  struct Communicator {
    std::int64_t ranks = 0;
    std::map<std::int64_t, std::size_t> host_of = {};  // by rank: its host's place in `hosts`
    std::set<std::int64_t> started = {}, complete = {};
    std::int64_t nodes = 0;  // as NCCL says; 0: it does not
    Connections connections = {};

    /// Whether each of its ranks is in the log.
    bool is_whole() const { return static_cast<std::int64_t>(host_of.size()) >= ranks; }
    /// The connections of rings over the network; all over the network where the log does not say the rings.
    std::map<Pair, std::set<int>> ring_crossings() const;
  };
  struct Warning {
    const NcclWarningKind* kind = nullptr;  // nullptr: not known
    std::string host, peer, text, time;     // peer: the address or the host that it names; time: as logged
    std::int64_t line = 0, count = 0;
  };
  std::vector<Host> hosts;
  std::map<std::string, Communicator> communicators;  // by their commId; before NCCL 2.16 by their number of ranks
  bool communicators_may_merge = false;               // without commId, equal numbers of ranks look like one
  std::vector<Warning> warnings;                      // equal ones merged, the earliest first
  bool cut = false;                                   // more hosts or connections than are kept

  /// nullptr: there is none.
  const Communicator* largest() const;
  /// Hosts that log under a name; a line such as "NCCL version …" has none.
  std::vector<const Host*> named_hosts() const;
  /// A fact (nccl/log.h) of the first host that has it; "": none has.
  std::string anywhere(std::string_view fact) const;
};

/// Takes lines that NCCL logged, of any ranks.
class NcclUseReader {
 public:
  NcclUseReader() { host_at(""); }  // of lines without a host, and of hosts beyond those that are kept
  /// Returns whether NCCL wrote the line: a host, a process and a thread stand before its marker.
  bool line(const Line& line);
  NcclUse finish();

 private:
  struct Origin {
    std::string host;
    std::string rank;  // "host:pid [0]": NCCL makes connections in threads of their own
    std::string time;
    std::string place;  // "transport/nvls.cc:244", of a warning
  };

  static Origin origin_of(std::string_view prefix);
  std::size_t host_at(const std::string& name);
  void communicator(std::string_view message, const Origin& origin);
  void connection(std::string_view message, const Origin& origin);
  void ring(std::string_view message, const Origin& origin);
  /// Gives the connections that a rank has made to its communicator.
  void take_connections(const std::string& rank);
  void warning(std::string_view message, const Origin& origin, std::int64_t line);

  NcclUse use_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<nccl::LogReader> readers_;                // of each host
  std::map<std::string, std::string> communicator_of_;  // the last one that a rank began
  /// By rank: until NCCL 2.17 a communicator is named once it is complete, since 2.22 connections follow that.
  std::map<std::string, NcclUse::Connections> open_connections_;
  std::map<std::string, std::size_t> warning_places_;
  std::size_t kept_ = 0;  // of connections and neighbours
};

/// How many of their adapters the hosts use: "1 of 2 on each host"; "" of none.
std::string adapters_text(const std::vector<const NcclUse::Host*>& hosts);
/// Adds faults as `problems` and `notes`, the first cause first; the first one becomes the headline.
void judge_nccl(const NcclUse& use, Answer& out);
/// Network, transports, algorithms, and what is wrong with them.
Answer answer_of(const NcclUse& use);

}  // namespace harness::evidence
