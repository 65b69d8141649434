#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace harness::program {

// How the groups of a job spread over nodes. node_of[rank] covers every rank of the layout, or more; the numbering of
// nodes is arbitrary.

/// Placement of the members of one instance of a group.
struct Spread {
  int ranks = 1, nodes = 1;
  int most_on_a_node = 1;
  int instances_on_a_node = 1;                      // that use the network of one of its nodes at the same time
  auto operator<=>(const Spread&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};
/// Returns for each rank the placement of its instance; of a rank without one, that of a rank alone.
std::vector<Spread> spreads_of(const Group& group, const Layout& layout, std::span<const int> node_of);

/// Number of nodes that the widest group along each axis spans. A group holds the ranks that differ along this axis
/// alone. 0: no rank has another beside it on the axis.
struct Spans {
  std::array<int, axis_count> nodes{};
  int embedding = 0;  // of the first and the last pipeline stage, if these share a tied embedding
  int operator[](Axis axis) const { return nodes[static_cast<std::size_t>(axis)]; }
  /// "tensor 1, data 2, embedding 2": of visible_axes; "" if no rank has another beside it.
  std::string text() const;
};

/// Computes Layout::replicas_of_node for ranks on these nodes.
int replicas_of_node(const Layout& layout, std::span<const int> node_of);

/// `at`: of the ranks. `tied`: the first and the last pipeline stage share an embedding.
Spans spans_of(std::span<const Coordinates> at, std::span<const int> node_of, bool tied);

/// How the members of a group share out a message.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, send_recv };

/// Fewest bytes that one of `parts` equal holders of a message of 1 byte must send, all its members together:
/// 2 (p - 1) / p for an all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009), 1 if switches
/// reduce; (p - 1) / p for its halves, a reduce-scatter and an all-gather, and for an all-to-all; 1 for send_recv. If
/// each holder is one rank, this is the bus factor of nccl-tests (doc/PERFORMANCE.md).
double share_sent(Collective kind, double parts, bool switches_reduce = false);

/// Returns the collective that an operation is; nothing for any other operation.
std::optional<Collective> collective_of(const Action& action);

/// Bytes that a rank sends in a communication without in-network reduction: its share of the message; 0 for a receive.
double sent_bytes(const ProgramSet& set, const Program& program, const Action& action);

/// Bandwidths of the links that carry a collective's bytes, in one direction; 0: not known.
struct Links {
  double rank_bytes_per_s = 0;         // of one rank, towards the others on its node
  double node_bytes_per_s = 0;         // of one node, towards the others
  bool switches_reduce_nodes = false;  // links within a node may reduce in the switch (NVLink SHARP)
  bool switches_reduce_network = false;
};

/// Lower bound on the time per byte of a message (its size in nccl-tests' sense) over these links when all instances of
/// the group communicate at once. It follows from the fewest bytes that must leave one rank, and one node, whatever the
/// algorithm (docs/method.md). node_of[rank]: for every rank of the layout. 0 if a link that it depends on is not
/// known, or no rank has a partner.
double least_seconds_per_byte(Collective kind, const Group& group, const Layout& layout, std::span<const int> node_of,
                              const Links& links);

/// Lower bounds on the times of the communications of a job's Programs.
class LeastTimes {
 public:
  /// `set` must outlive it.
  LeastTimes(const ProgramSet& set, std::vector<int> node_of, const Links& links)
      : set_(set), node_of_(std::move(node_of)), links_(links) {}
  /// Returns the lower bound for one communication of a role, as least_seconds_per_byte(); all ranks of a stage send at
  /// once. 0: not known.
  double seconds(int role, const Operation& operation);

 private:
  double of_peers(int role, const Peer& peer) const;

  const ProgramSet& set_;
  std::vector<int> node_of_;
  Links links_;
  // By kind of action, and by communicator with role 0 in the partner's place.
  std::map<std::pair<std::size_t, Communicator>, double> per_byte_;
};

}  // namespace harness::program
