#include "workloads/limits.h"

#include <algorithm>
#include <map>

#include "plan/check_point.h"
#include "workloads/operations.h"

namespace harness {
namespace {

// The fewest bytes that one of `parts` equal holders of a message of 1 byte must send, when their members share them
// out: 2 (p - 1) / p for an all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009), 1 where
// switches add up; (p - 1) / p for the halves of it.
double share_sent(CollectiveKind kind, double parts, bool switches_reduce) {
  const double once = (parts - 1) / parts;
  if (kind != CollectiveKind::all_reduce) return once;
  return switches_reduce ? std::min(1.0, 2 * once) : 2 * once;
}

// Bytes that leave each node for a message of 1 byte, all groups together.
class NodeTraffic {
 public:
  NodeTraffic(const Settings& s, const Layout& layout, std::span<const int> node_of, bool switches_reduce)
      : s_(s), layout_(layout), node_of_(node_of), switches_reduce_(switches_reduce) {}

  double most() {
    const Group group{"", axes_of(s_.collective_over), {}};
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const auto members = group.members(layout_, layout_.coordinates(rank));
      if (members.front() == rank) add(members);
    }
    double most = 0;
    for (const auto& [node, bytes] : sent_) most = std::max(most, bytes);
    return most;
  }
  /// Whether some group has members on several nodes, and whether some node has several members of a group.
  bool spans() const { return spans_; }
  bool shares() const { return shares_; }

 private:
  int node(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }

  void add(const std::vector<int>& members) {
    std::map<int, double> here;  // members by node
    for (const int rank : members) here[node(rank)] += 1;
    shares_ = shares_ || here.size() < members.size();
    if (here.size() < 2) return;
    spans_ = true;
    const auto n = static_cast<double>(members.size());
    if (s_.collective == CollectiveKind::send_recv) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (node(members[i]) != node(members[(i + 1) % members.size()])) sent_[node(members[i])] += 1;
      }
      return;
    }
    for (const auto& [at, count] : here) {
      sent_[at] += s_.collective == CollectiveKind::all_to_all
                       ? count * (n - count) / n
                       : share_sent(s_.collective, static_cast<double>(here.size()), switches_reduce_);
    }
  }

  const Settings& s_;
  const Layout& layout_;
  std::span<const int> node_of_;
  bool switches_reduce_;
  std::map<int, double> sent_;
  bool spans_ = false, shares_ = false;
};

}  // namespace

double highest_bus_bandwidth(const Settings& s, const Layout& layout, std::span<const int> node_of,
                             const Links& links) {
  if (s.workload != WorkloadKind::collective) return 0;
  NodeTraffic nodes(s, layout, node_of, links.switches_reduce_network);
  const double node_bytes = nodes.most();
  double seconds = 0;  // for a message of 1 byte
  if (nodes.spans()) {
    if (links.node_bytes_per_s == 0) return 0;
    seconds = node_bytes / links.node_bytes_per_s;
  }
  // What a rank sends may go to its node or beyond it: it has both ways.
  const double n = members_of(s.collective_over, layout);
  const double rank_bytes =
      s.collective == CollectiveKind::send_recv ? 1 : share_sent(s.collective, n, links.switches_reduce_nodes);
  const double rank_rate = links.rank_bytes_per_s + (nodes.spans() ? links.node_bytes_per_s : 0);
  if (nodes.shares()) {
    if (links.rank_bytes_per_s == 0 && !nodes.spans()) return 0;
    if (links.rank_bytes_per_s > 0) seconds = std::max(seconds, rank_bytes / rank_rate);
  }
  return seconds > 0 ? point_of(s, layout).bus_factor / seconds : 0;
}

}  // namespace harness
