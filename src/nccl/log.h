#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace harness::nccl {

/// How NCCL ran a collective, and how often.
struct Call {
  std::string function;    // "AllReduce"; "" where the log does not say (NCCL 2.20 to 2.22)
  std::int64_t bytes = 0;  // as NCCL counts: sent per rank for AllGather, received per rank for ReduceScatter
  std::string algorithm;   // Ring, Tree, NVLS, NVLSTree, PAT, CollNetDirect, CollNetChain; Symmetric, CopyEngine
  std::string protocol;    // Simple, LL, LL128; for a symmetric call the kernel's name; "" for copy engines
  int first_channel = -1, last_channel = -1;  // -1: not logged
  std::int64_t calls = 0;
};

/// The content of NCCL's log.
struct Observed {
  std::vector<Call> calls;  // equal ones merged; sorted by function, bytes, algorithm, protocol, channels
  /// Each name once, in the order in which it was first seen; several values are joined by fact_separator:
  ///   version                "2.28.9+cuda13.0"
  ///   network                "IB", "Socket" or a plug-in's name
  ///   network_devices        "mlx5_0:1/IB mlx5_1:1/RoCE", "eth0 eth1", or "none (IB)"
  ///   libibverbs             "not found": NCCL could not open it
  ///   bootstrap_interface    "eth0"
  ///   channels               "8 coll, 0 collnet, 16 nvls, 8 p2p, 2 p2p per peer"
  ///   gpu_direct             "enabled", "disabled", or "on some connections"; gpu_direct_send, gpu_direct_receive: at
  ///                          the sending and the receiving ends of connections
  ///   nvls                   "available", "not available"
  ///   ib_mtu                 bytes of data per packet on the connected ports: "4096"
  ///   transport KIND         number of sending connections: "transport P2P/CUMEM", "transport NET/IB/0/GDRDMA"
  ///   pxn                    number of sending connections through another GPU's network device
  ///   NCCL_X                 the value that NCCL reports for its environment variable: "4194304"
  ///   refused NCCL_X         NCCL's message when it rejected the value
  NameValues facts;
  std::vector<std::string> warnings;  // WARN lines without their prefix, each once, the first 20

  /// The value of a fact, "" if there is none.
  std::string fact(std::string_view name) const { return value_of(facts, name); }
};

inline constexpr std::string_view fact_separator = " | ";

/// Reads the log that NCCL writes with NCCL_DEBUG=INFO and the subsystems of LogFile, line by line. Lines may come from
/// several ranks and communicators, in any order. Never throws on content: skips what it does not understand. Rank 0 of
/// each communicator logs calls, from NCCL 2.20 on, when they are enqueued: those of a step at its rehearsal, and those
/// of a CUDA graph once more at its capture.
class LogReader {
 public:
  /// Keeps at most `most_bytes` of distinct values. After that, still counts known values and skips new ones.
  explicit LogReader(std::size_t most_bytes = static_cast<std::size_t>(-1)) : room_(most_bytes) {}

  /// Reads one line, or several lines that ranks interleaved.
  void line(std::string_view text);
  /// Returns the content of all lines. Call it once.
  Observed finish();

 private:
  bool call(std::string_view message);
  bool environment(std::string_view message);
  bool refused(std::string_view message);
  bool connection(std::string_view message);
  bool network(std::string_view message);
  bool communicator(std::string_view message);
  void warning(std::string_view message);
  void fact(const std::string& name, std::string_view value);
  bool has_room(std::size_t bytes);

  using Key = std::tuple<std::string, std::int64_t, std::string, std::string, int, int>;
  // Counts the ends of network connections, and those that use GPUDirect RDMA.
  struct Ends {
    std::int64_t all = 0, direct = 0;
  };
  std::size_t room_;
  std::map<Key, std::int64_t> calls_;
  std::vector<std::pair<std::string, std::vector<std::string>>> facts_;
  std::map<std::string, std::int64_t> transports_;
  std::int64_t through_peers_ = 0;
  Ends sends_, receives_;
  std::set<bool> direct_decisions_;
  std::vector<std::string> warnings_;
};

/// Whether an interface, as NCCL names it ("docker0", "cni0", "lo"), belongs to containers, virtual machines, tunnels
/// or the loopback, and so reaches no other node, or more slowly than the network does.
bool is_virtual_interface(std::string_view name);

/// Reads a whole log.
Observed parse_log(std::string_view text);

/// Sends this process's NCCL log to a file: sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE. NCCL reads them at
/// its first log line and keeps them for the life of the process, so construct this before the first NCCL call.
class LogFile {
 public:
  LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Returns the first `max_bytes` bytes written so far. Removes the file; NCCL may still write to it.
  std::string take(std::size_t max_bytes) const;

 private:
  PrivateFolder folder_;
  std::string path_;
};

/// A setting that a case requests of NCCL: a variable of the registry in canonical form ("nccl_buffsize", "4 MiB",
/// "NCCL_BUFFSIZE"), or an environment variable by its own name.
struct Request {
  std::string name, value, environment_name;
};

/// Whether NCCL followed the requests. Each line reads "nccl_algo=AllReduce:Tree: NCCL ran AllReduce with …".
struct Compliance {
  std::vector<std::string> not_honoured;   // NCCL did otherwise, or the request cannot have had an effect
  std::vector<std::string> not_confirmed;  // the log shows neither
};

/// Checks each request against the log; NCCL's echo of the value decides for a variable without a rule of its own.
/// `observed` should come from the logs of all ranks: one rank of a communicator logs calls, every process its network
/// devices.
Compliance check_compliance(std::span<const Request> requests, const Observed& observed);

}  // namespace harness::nccl
