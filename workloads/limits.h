#pragma once

#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::workloads {

/// What carries a collective's bytes, in one direction; 0: not known.
struct Links {
  double rank_bytes_per_s = 0;         // of one rank, towards the others on its node
  double node_bytes_per_s = 0;         // of one node, towards the others
  bool switches_reduce_nodes = false;  // the links between ranks of a node may add up on the way (NVLink SHARP)
  bool switches_reduce_network = false;
};

/// The least time, for each byte of a message (its size in nccl-tests' sense), that these links allow when all
/// instances of the group communicate at once: from the fewest bytes that must leave one rank, and one node, whatever
/// the algorithm (docs/method.md). node_of[rank]: for every rank of the layout. 0 when a link that it depends on is not
/// known, or nobody has anybody to talk to.
double least_seconds_per_byte(config::CollectiveKind kind, const program::Group& group, const program::Layout& layout,
                              std::span<const int> node_of, const Links& links);

/// The same as a bus bandwidth, of settings whose workload is one collective; 0 for any other.
double max_bus_bandwidth(const config::Settings& settings, const program::Layout& layout, std::span<const int> node_of,
                         const Links& links);

/// The least times of the communications of a job's Programs.
class LeastTimes {
 public:
  /// `set` must outlive it.
  LeastTimes(const program::ProgramSet& set, std::vector<int> node_of, const Links& links)
      : set_(set), node_of_(std::move(node_of)), links_(links) {}
  /// Of one communication of a role: as least_seconds_per_byte(); all ranks of a stage send at once. 0: not known.
  double seconds(int role, const program::Operation& operation);

 private:
  double of_peers(int role, const program::Peer& peer) const;

  const program::ProgramSet& set_;
  std::vector<int> node_of_;
  Links links_;
  std::map<std::pair<config::CollectiveKind, program::GroupId>, double> known_;
  std::map<std::tuple<int, program::Axis, int>, double> known_peers_;  // role and how it sees its peer
};

}  // namespace harness::workloads
