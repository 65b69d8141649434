#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/answer.h"
#include "evidence/lines.h"
#include "nccl/log.h"

namespace harness::evidence {

/// A line that NCCL logs with WARN and that people ask about.
struct NcclWarningKind {
  std::string_view name;     // "status=12"
  std::string_view pattern;  // alternatives between '|', each of parts between '&' that must all be there
  std::string_view
      headline;  // {host} and {peer} are replaced; the cause in one clause; "": harmless, `remedy` says why
  std::string_view remedy;
  bool effect = false;   // something else failed before: never a cause
  bool of_peer = false;  // the suspect is the peer that the line names, not the host that logged it
};

/// The kind of a text; nullptr: none is known.
const NcclWarningKind* nccl_warning_kind(std::string_view text);

/// NCCL in a job, from the logs of any of its ranks.
struct NcclUse {
  static constexpr std::size_t most_of_a_host = 128;  // GPUs, adapters, values of a fact

  /// A GPU of a host, by its own ends of connections.
  struct Gpu {
    struct Ends {
      std::int64_t all = 0, direct = 0;  // over a network that could use GPUDirect RDMA; that use it
    };
    Ends sends = {}, receives = {};
    std::set<std::string> networks = {};           // "IB", "Socket"
    std::int64_t by_peer = 0, through_memory = 0;  // ends of connections within the host: P2P; SHM

    /// "sends and receives with it", of several "send and receive with it"; "" where it has no connection over such a
    /// network.
    std::string direct_text(bool several = false) const;
  };
  /// "GPU 0" before "GPU 10".
  struct ByNumber {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  /// By GPU ("GPU 0", "GPU 1b000"; until NCCL 2.4 "rank 0").
  using Gpus = std::map<std::string, Gpu, ByNumber>;
  /// A process of a host and one GPU that it logs of: what NCCL says there last.
  struct Process {
    std::string id, gpu;  // "501"; "0" of "[0]", as CUDA counts
    std::string version = {}, network = {}, devices = {};
  };
  struct Host {
    std::string name;                                  // "": lines without a host
    nccl::Observed seen = {};                          // of all its ranks
    std::set<int> adapters = {};                       // by NCCL's number, of connections over the network
    Gpus gpus = {};                                    // the first 128
    std::vector<Process> processes = {};               // the first 128
    std::map<std::string, bool> direct_adapters = {};  // by adapter, whether NCCL found GPUDirect RDMA for it
    bool reads_directly = false;                       // NCCL said that adapters read the memory of a GPU
    /// Ends of connections over the network that are here, by sender and receiver: 1 the sender, 2 the receiver.
    std::map<std::pair<std::int64_t, std::int64_t>, int> ends = {};
    std::string direct_reason = {};  // "8 > 5": the distance over its limit, why GPUDirect RDMA is off
    bool sockets = false;            // it has connections over TCP sockets
    std::int64_t inner_network = 0;  // connections over the network between two ranks of this host
    int result = 0;                  // of the first call of NCCL that failed: 1 to 6, as ncclResult_t; 0: none did
    std::string error_path = {};     // "bootstrap.cc, init.cc": the places that handed it upwards

    std::size_t devices() const;  // network devices that NCCL lists; 0: it does not
    bool on_sockets() const;      // and on nothing else
    bool reaches_others() const;  // a connection over the network has its other end elsewhere
    /// All its GPUs as one, and "GPU 0 sends …, GPU 1 does neither" where they differ.
    Gpu together() const;
    std::string direct_text(bool several = false) const;
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;  // ranks: the sender, the receiver
  struct Connections {
    std::map<Pair, std::set<int>> crossings = {};  // over the network, and the adapters that the sender uses
    std::set<Pair> in_rings = {}, in_trees = {};   // neighbours, where NCCL says its rings and trees
  };
  struct Communicator {
    std::int64_t ranks = 0;
    std::map<std::int64_t, std::size_t> host_of = {};  // by rank: its host's place in `hosts`
    std::set<std::int64_t> started = {}, complete = {};
    std::int64_t nodes = 0;  // as NCCL says; 0: it does not
    Connections connections = {};

    /// Whether each of its ranks is in the log.
    bool is_whole() const { return static_cast<std::int64_t>(host_of.size()) >= ranks; }
    /// The connections of rings over the network, and all of them where the log does not tell rings from trees.
    std::map<Pair, std::set<int>> ring_crossings() const;
  };
  struct Warning {
    const NcclWarningKind* kind = nullptr;  // nullptr: not known
    std::string host, peer, text, time;     // peer: the address or the host that it names; time: as logged
    std::string file;
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
  bool line(const Line& line, const std::string& file);
  NcclUse finish();

 private:
  struct Origin {
    std::string host, process, gpu;  // "pid"; "0" of "[0]"
    std::string rank;                // "host:pid [0]": NCCL makes connections in threads of their own
    std::string time;
    std::string place;  // "transport/nvls.cc:244", of a warning
  };
  static constexpr std::size_t most_connections = 1u << 18;

  static Origin origin_of(std::string_view prefix);
  std::size_t host_at(const std::string& name);
  void communicator(std::string_view message, const Origin& origin);
  // nccl_connections.cpp
  void connection(std::string_view message, const Origin& origin);
  void neighbours(std::string_view message, const Origin& origin);
  /// Gives the connections that a rank has made to its communicator.
  void take_connections(const std::string& rank);
  void process(std::string_view message, const Origin& origin);
  void warning(std::string_view message, const Origin& origin, const Line& line, const std::string& file);

  NcclUse use_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<nccl::LogReader> readers_;                // of each host
  std::map<std::string, std::string> communicator_of_;  // the last one that a rank began
  /// By rank: until NCCL 2.17 a communicator is named once it is complete, since 2.22 connections follow that.
  std::map<std::string, NcclUse::Connections> open_connections_;
  std::map<std::string, std::size_t> warning_places_;
  std::size_t kept_ = 0;  // of connections and neighbours
};

/// How hosts that are alike use GPUDirect RDMA: "n01 and n02 send and receive with it", "n03: GPU 0 sends …".
std::string direct_text_of(const std::vector<const NcclUse::Host*>& alike);
/// How many of their adapters the hosts use: "1 of 2 on each host".
std::string adapters_text(const std::vector<const NcclUse::Host*>& hosts);
/// The hosts of which something holds.
template <class Which>
std::vector<std::string> names_of(const std::vector<const NcclUse::Host*>& hosts, const Which& which) {
  std::vector<std::string> names;
  for (const NcclUse::Host* host : hosts) {
    if (which(*host)) names.push_back(host->name);
  }
  return names;
}
/// The part of judge_nccl() that is about networks, GPUDirect RDMA, adapters and settings.
void judge_network(const NcclUse& use, Answer& out);
/// Adds faults as `problems` and `notes`, the first cause first; the first one becomes the headline.
void judge_nccl(const NcclUse& use, Answer& out);
/// Network, transports, algorithms, and what is wrong with them.
Answer answer_of(const NcclUse& use);

}  // namespace harness::evidence
