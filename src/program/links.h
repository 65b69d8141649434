#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// How a message is shared out among the members of a group.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, send_recv };

/// The one that an operation is; nothing for any other operation.
std::optional<Collective> collective_of(const Action& action);

/// The fewest bytes that one of `parts` equal holders of a message of 1 byte must send, when their members share them
/// out: 2 (p - 1) / p for an all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009), 1 where
/// switches add up; (p - 1) / p for the halves of it, a reduce-scatter and an all-gather, and for an all-to-all.
double share_sent(Collective kind, double parts, bool switches_reduce = false);
/// Bytes that a rank sends in a communication where no switch adds up: its share of the message; a receive from one
/// peer is none.
double sent_bytes(const ProgramSet& set, const Program& program, const Action& action);

/// The links that carry a collective's bytes, in one direction; 0: not known.
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
double least_seconds_per_byte(Collective kind, const Group& group, const Layout& layout, std::span<const int> node_of,
                              const Links& links);

/// The least times of the communications of a job's Programs.
class LeastTimes {
 public:
  /// `set` must outlive it.
  LeastTimes(const ProgramSet& set, std::vector<int> node_of, const Links& links)
      : set_(set), node_of_(std::move(node_of)), links_(links) {}
  /// The least time of one communication of a role: as least_seconds_per_byte(); all ranks of a stage send at once. 0:
  /// not known.
  double seconds(int role, const Operation& operation);

 private:
  double of_peers(int role, const Peer& peer) const;

  const ProgramSet& set_;
  std::vector<int> node_of_;
  Links links_;
  std::map<std::pair<Collective, GroupId>, double> known_;
  std::map<std::tuple<int, Axis, int>, double> known_peers_;  // role and how it sees its peer
};

}  // namespace harness::program
