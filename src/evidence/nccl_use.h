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

/// A kind of NCCL WARN line with a known cause and remedy.
struct NcclWarningKind {
  std::string_view name;      // "status=12"
  std::string_view pattern;   // alternatives separated by '|'; within one, all parts separated by '&' must occur
  std::string_view headline;  // states the cause in one clause, with {host} and {peer} for their names
  std::string_view remedy;
  bool effect = false;   // consequence of an earlier failure, never a cause
  bool of_peer = false;  // the suspect is the peer named in the line, not the host that logged it
};

/// Returns nullptr for a text of no known kind.
const NcclWarningKind* nccl_warning_kind(std::string_view text);

/// NCCL's activity in a job, from the logs of any of its ranks.
struct NcclUse {
  /// Connection ends over a network that supports GPUDirect RDMA, and how many of them use it.
  struct Ends {
    std::int64_t all = 0, direct = 0;
  };
  /// Connection ends of a GPU within its host: by P2P, through SHM.
  struct Gpu {
    std::int64_t by_peer = 0, through_memory = 0;
  };
  struct Host {
    std::string name;                      // "": collects lines without a host
    nccl::Observed seen = {};              // from all its ranks
    std::set<int> adapters = {};           // NCCL's numbers of the adapters that connections use
    std::map<std::string, Gpu> gpus = {};  // "GPU 0", "GPU 1b000"
    Ends sends = {}, receives = {};
    std::string direct_reason = {};  // "8 > 5": distance and limit that disable GPUDirect RDMA
    std::int64_t inner_network = 0;  // network connections between two ranks of this host
    bool networked = false;          // has connections over a network

    std::size_t devices() const;  // network devices that NCCL lists; 0: none listed
    bool on_sockets() const;      // uses sockets and nothing else
    bool uses_direct() const { return sends.direct + receives.direct > 0; }
    std::string direct_text() const;  // "sends and receives with it"; "": no connections that could use it
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;  // sender rank, receiver rank
  struct Connections {
    std::map<Pair, std::set<int>> crossings = {};  // network connections and the sender's adapters
    std::set<Pair> in_rings = {};                  // ring neighbours, if NCCL logs its rings
  };
  struct Communicator {
    std::int64_t ranks = 0;
    std::map<std::int64_t, std::size_t> host_of = {};  // index into `hosts`, by rank
    std::set<std::int64_t> started = {}, complete = {};
    std::int64_t nodes = 0;  // as NCCL logs it; 0: not logged
    bool several = false;    // a rank completed it twice: several communicators under one name
    Connections connections = {};

    /// Returns whether the log covers every rank.
    bool is_whole() const { return static_cast<std::int64_t>(host_of.size()) >= ranks; }
    /// Returns the network connections of the rings, or all network connections if the log does not contain the rings.
    std::map<Pair, std::set<int>> ring_crossings() const;
  };
  struct Warning {
    const NcclWarningKind* kind = nullptr;  // nullptr: unknown kind
    std::string host, peer, text, time;     // peer: address or host named in the text; time: as logged
    std::int64_t line = 0, count = 0;
  };
  static constexpr std::string_view unnamed = "the log's host";  // for lines that have lost their host
  std::vector<Host> hosts;
  std::map<std::string, Communicator> communicators;  // by commId or color; before NCCL 2.16 by number of ranks
  bool communicators_may_merge = false;               // without commId, communicators of equal size look like one
  std::vector<Warning> warnings;                      // earliest first; equal ones are merged
  bool cut = false;                                   // some hosts or connections exceeded the limits
  bool lost_hosts = false;                            // lines have lost their host: their ranks count as on one
  bool thinned = false;                               // Ray left out lines that repeat others

  /// Returns nullptr if there are no communicators.
  const Communicator* largest() const;
  /// Returns the hosts with a name; a line such as "NCCL version …" has none.
  std::vector<const Host*> named_hosts() const;
  /// Returns a fact (nccl/log.h) from the first host that has it; "": no host has it.
  std::string anywhere(std::string_view fact) const;
};

/// Takes NCCL log lines from any ranks.
class NcclUseReader {
 public:
  NcclUseReader() { host_at(""); }  // for lines without a host, and for hosts over the limit
  /// Returns whether NCCL wrote the line: a host, a process and a thread precede its marker, or the GPU alone, as in
  /// "[0] NCCL INFO …": people cut the host off before they publish a log.
  bool line(const Line& line);
  /// Takes what PyTorch prints as NCCL's "Last error:" and returns whether its kind is known. It counts only if the log
  /// has no warnings of NCCL itself.
  bool last_error(const Line& line);
  NcclUse finish();

 private:
  struct Origin {
    std::string host;
    std::string rank;  // "host:pid [0]", without the thread: NCCL connects in separate threads
    std::string time;
    std::string place;  // "transport/nvls.cc:244" for a warning
  };

  static Origin origin_of(std::string_view prefix);
  std::size_t other_line_in(std::string_view text) const;
  bool line_of_rank(const Line& line);
  std::size_t host_at(const std::string& name);
  void communicator(std::string_view message, const Origin& origin);
  void connection(std::string_view message, const Origin& origin);
  void ring(std::string_view message, const Origin& origin);
  /// Assigns the connections that a rank has made to its communicator.
  void take_connections(const std::string& rank);
  void warning(std::string_view message, const Origin& origin, std::int64_t line);

  NcclUse use_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<nccl::LogReader> readers_;                // one per host
  std::map<std::string, std::string> communicator_of_;  // by rank: the communicator it began last
  /// By rank: up to NCCL 2.17 a communicator is named only once complete; since 2.22 connections follow that.
  std::map<std::string, NcclUse::Connections> open_connections_;
  std::map<std::string, std::size_t> warning_places_;
  std::size_t kept_ = 0;    // stored connections and ring neighbours
  std::string last_error_;  // as PyTorch prints it
  std::int64_t last_error_line_ = 0;
};

/// Describes how many of their adapters the hosts use: "1 of 2 on each host"; "": no host uses any.
std::string adapters_text(const std::vector<const NcclUse::Host*>& hosts);
/// Adds faults as `problems` and `notes`, root cause first; the first one becomes the headline.
void judge_nccl(const NcclUse& use, Answer& out);
/// Reports network, transports, algorithms and their faults.
Answer answer_of(const NcclUse& use);

}  // namespace harness::evidence
