#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program/program.h"

namespace harness::program {

// How the groups of a job spread over nodes. node_of[rank]: for every rank of the layout, or of more; nodes are
// numbered in any way.

/// Where the members of one instance of a group stand.
struct Spread {
  int ranks = 1, nodes = 1;
  int most_on_a_node = 1;
  int instances_on_a_node = 1;                      // of the group, that leave a node at once and share its network
  auto operator<=>(const Spread&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};
/// `rank`: a member of the instance.
Spread spread_of(const Group& group, const Layout& layout, int rank, std::span<const int> node_of);

/// How many nodes the groups along each axis span: the ranks that differ along this axis alone, the group that spans
/// most. 0: nobody stands on the axis beside another.
struct Spans {
  std::array<int, axis_count> nodes{};
  int embedding = 0;  // of the first and the last pipeline stage, where these share a tied embedding
  int operator[](Axis axis) const { return nodes[static_cast<std::size_t>(axis)]; }
  /// "tensor 1, data 2, embedding 2": of visible_axes; "" where no rank has another beside it.
  std::string text() const;
};

/// Layout::replicas_of_node of ranks on these nodes.
int replicas_of_node(const Layout& layout, std::span<const int> node_of);

/// By the coordinates of the ranks. `tied`: the ends of the pipeline share an embedding.
Spans spans_of(std::span<const Coordinates> at, std::span<const int> node_of, bool tied);
/// By the coordinates that the layout gives them.
Spans spans_of(const Layout& layout, std::span<const int> node_of, bool tied);

/// How a message is shared out among the members of a group.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, send_recv };

/// The one that an operation is; nothing for any other operation.
std::optional<Collective> collective_of(const Action& action);

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
