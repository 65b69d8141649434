#include "explain/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/part.h"
#include "sim/rank_classes.h"

namespace harness::explain {

namespace {

using program::AxisSet;

// Nodes or ranks whose slow network affects the same ranks: those that communicate across nodes with them or with a
// rank on them. The step cannot tell these places apart.
struct Reach {
  std::vector<int> places;     // ascending
  std::vector<bool> affected;  // by rank
};

// Groups the nodes of a job, or its ranks, by the ranks that they affect, without places that affect none. Leaves out
// the all-reduce of all ranks that ends a step, which reveals nothing.
std::vector<Reach> reaches(const program::ProgramSet& set, const std::vector<int>& node_of, bool of_nodes) {
  const program::Layout& layout = set.layout;
  std::map<int, std::vector<bool>> by_place;
  // Notes a set of ranks that communicate with each other, if they do so across nodes.
  const auto meet = [&](const std::vector<int>& members) {
    std::set<int> nodes;
    for (const int rank : members) nodes.insert(node_of[static_cast<std::size_t>(rank)]);
    if (nodes.size() < 2) return;
    for (const int place : of_nodes ? nodes : std::set<int>(members.begin(), members.end())) {
      std::vector<bool>& affected = by_place.try_emplace(place, layout.ranks(), false).first->second;
      for (const int rank : members) affected[static_cast<std::size_t>(rank)] = true;
    }
  };
  for (const program::Group& group : set.groups) {
    if (group.axes == AxisSet::all()) continue;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const program::Coordinates at = layout.coordinates(rank);
      if (group.begins_with(layout, at)) meet(group.members(layout, at));
    }
  }
  for (const auto& [axis, offset] : sim::directions_of(set)) {
    for (int rank = 0; rank < layout.ranks(); ++rank) meet({rank, layout.neighbour(rank, axis, offset)});
  }
  std::map<std::vector<bool>, std::vector<int>> alike;
  for (auto& [place, affected] : by_place) alike[std::move(affected)].push_back(place);
  std::vector<Reach> found;
  for (auto& [affected, places] : alike) found.push_back({std::move(places), affected});
  return found;
}

// Returns the mean over the affected ranks; 0 if there are none.
template <class SecondsOf>
double mean_over(const std::vector<bool>& affected, const SecondsOf& seconds_of) {
  double sum = 0;
  for (std::size_t rank = 0; rank < affected.size(); ++rank) sum += affected[rank] ? seconds_of(rank) : 0;
  return sum / std::max<double>(1, std::ranges::count(affected, true));
}

double mean_communication(const Picture& picture, const std::vector<bool>& affected) {
  return mean_over(affected, [&](std::size_t rank) { return picture.ranks[rank].communicates_s; });
}

constexpr double alike = 0.01;         // ratios of computing within this of 1 count as 1
constexpr double least_excess = 0.02;  // share of a rank's computation or communication, below which no fault is sought
constexpr double as_usual = 0.02;      // tolerance for snapping to a usual share

// The rate of a node over TCP: an interface of 200 Gbit/s carries no more, and usual ones have 10 to 100.
constexpr double most_tcp_bytes_per_s = 25e9, least_usual_tcp_bytes_per_s = 1e9, most_usual_tcp_bytes_per_s = 12.5e9;
// The least share of its rate that a working network or PCIe link has: 1 lane of 16, or the slowest rate of the fastest
// port.
constexpr double least_share = 1.0 / 16;

bool is_near(double share, double usual) {
  return std::abs(share - usual) <= as_usual * usual;
}

// Returns the multiple of 1 / rails that a share is near, if any.
std::optional<double> of_rails(double share, int rails) {
  const double whole = std::round(share * rails);
  if (whole < 1 || whole >= rails || !is_near(share, whole / rails)) return std::nullopt;
  return whole / rails;
}

// Half of the lanes or the previous generation leaves half; a quarter of the lanes leaves a quarter; and so on.
std::optional<double> of_lanes(double share) {
  for (const double usual : {0.5, 0.25, 0.125, 0.0625}) {
    if (is_near(share, usual)) return usual;
  }
  return std::nullopt;
}

// Returns the factor on computations in `measured` over `predicted`, of the median rank: a common factor says nothing
// about single ranks.
double common_slowness(const Picture& measured, const Picture& predicted) {
  std::vector<double> ratios;
  for (std::size_t rank = 0; rank < predicted.ranks.size(); ++rank) {
    if (predicted.ranks[rank].computes_s > 0)
      ratios.push_back(measured.ranks[rank].computes_s / predicted.ranks[rank].computes_s);
  }
  if (ratios.empty()) return 1;
  // The lower of two middle values: of two ranks the faster counts as normal.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

// The known faults and one more, or another value of one.
template <class Fault>
config::Faults with(config::Faults known, std::vector<Fault> config::Faults::*list, const Fault& more) {
  (known.*list).push_back(more);
  return known;
}
template <class Value>
config::Faults with(config::Faults known, Value config::Faults::*member, Value value) {
  known.*member = value;
  return known;
}

// Collects the faults that could add to the known ones.
class Candidates {
 public:
  Candidates(Suspects& suspects, const config::Faults& known)
      : suspects_(suspects),
        measured_(suspects.measured()),
        known_(known),
        experiment_(suspects.model().reference().experiment),
        network_(sim::network_of(experiment_, config::places(known, suspects.model().reference().node_of))) {}

  std::vector<Hypothesis> all() {
    add_slow_gpu();
    // The placement of ranks is known; only how much of the step it explains is open.
    if (!stand_node_by_node(suspects_.model().stood()))
      add_flag(config::Fault::tensor_across_nodes, &config::Faults::tensor_across_nodes);
    add_network();
    return std::move(found_);
  }

 private:
  void add_flag(config::Fault fault, bool config::Faults::*flag) {
    if (!(known_.*flag)) found_.push_back({.fault = fault, .faults = with(known_, flag, true)});
  }

  void add_slow_gpu() {
    const double slower = suspects_.slowness(known_);
    const Picture& expected = suspects_.predicted(known_, slower);
    int rank = -1;
    double most = 1 + least_excess;
    for (int r = 0; r < std::ssize(expected.ranks); ++r) {
      const double ratio = measured_.ranks[r].computes_s / expected.ranks[r].computes_s;
      if (ratio <= most) continue;
      most = ratio;
      rank = r;
    }
    if (rank < 0) return;
    const auto slow = [&](double times) {
      return with(known_, &config::Faults::slow_gpus, config::SlowGpu{rank, 1 / times});
    };
    const auto computes_s = [&](const Picture& picture) { return picture.ranks[rank].computes_s; };
    constexpr double most_times = 50;
    const auto times = solve(computes_s(measured_), computes_s(expected), most, most_times,
                             [&](double x) { return computes_s(suspects_.predicted(slow(x), slower)); });
    if (times) found_.push_back({config::Fault::slow_gpu, slow(*times), {rank}, false, 1 / *times, true});
  }

  // Returns the share with which the affected ranks communicate as long as measured; 1: none does.
  template <class With>
  double share_that_fits(const std::vector<bool>& affected, const With& with_share) {
    constexpr double most_times = 1000;
    double share = 1, slower = suspects_.slowness(known_);
    // Computations also slow down beside long communications, which must not count as slowness: fit once more with it.
    constexpr int passes = 2;
    for (int pass = 0; pass < passes; ++pass) {
      const auto length = [&](double x) {
        return mean_communication(suspects_.predicted(with_share(1 / x), slower), affected);
      };
      const double measured_s = mean_communication(measured_, affected),
                   expected_s = mean_communication(suspects_.predicted(known_, slower), affected);
      const auto times = solve(measured_s, expected_s, 1 / std::min(share, 0.5), most_times, length);
      if (!times) return 1;
      share = 1 / *times;
      const double now = suspects_.slowness(with_share(share));
      if (std::abs(now - slower) < alike) break;
      slower = now;
    }
    return share;
  }

  // Returns the reach that best fits the ranks' excess communication, by least squares; nullopt if there is none.
  std::optional<Reach> best_fit(bool of_nodes) {
    const Picture& expected = suspects_.fitted(known_);
    std::optional<Reach> best;
    double most = 0;
    for (Reach& reach : reaches(suspects_.model().set(), network_.node_of, of_nodes)) {
      const double excess_s =
          mean_communication(measured_, reach.affected) - mean_communication(expected, reach.affected);
      // The reduction of the sum of squares if all affected ranks communicate longer by their mean excess.
      const double fall = excess_s > 0 ? excess_s * excess_s * std::ranges::count(reach.affected, true) : 0;
      if (fall <= most) continue;
      most = fall;
      best = std::move(reach);
    }
    return best;
  }

  void add_network() {
    if (!(network_.node_bytes_per_s > 0) || known_.socket_bytes_per_s > 0) return;  // TCP hides the rest
    const auto nodes = best_fit(true);
    if (!nodes) return;
    const double expected_s = mean_communication(suspects_.fitted(known_), nodes->affected);
    if (mean_communication(measured_, nodes->affected) < (1 + least_excess) * expected_s) return;
    add_flag(config::Fault::acs_on, &config::Faults::acs_on);
    add_flag(config::Fault::no_gpudirect, &config::Faults::no_gpudirect);
    add_tcp();
    add_slow_link(*nodes);
    if (experiment_.hardware->compute_capability == 0) return;  // the bandwidth of PCIe is then unknown
    add_narrow_pcie(*nodes, true);
    if (const auto ranks = best_fit(false)) add_narrow_pcie(*ranks, false);
  }

  void add_tcp() {
    const auto over_tcp = [&](double share) {
      return with(known_, &config::Faults::socket_bytes_per_s, share * network_.node_bytes_per_s);
    };
    const double share = share_that_fits(std::vector<bool>(suspects_.model().set().layout.ranks(), true), over_tcp);
    const double rate = share * network_.node_bytes_per_s;
    if (share >= 1 || rate > most_tcp_bytes_per_s) return;
    const bool usual = rate >= least_usual_tcp_bytes_per_s && rate <= most_usual_tcp_bytes_per_s;
    found_.push_back({config::Fault::socket_fallback, over_tcp(share), {}, false, share, usual});
  }

  // Adds a fault that leaves a share of something at one of these places. `carried`: the share of a rank's part of the
  // network that the whole carries. `usual_share`: the usual share that another is near, if any.
  template <class With, class UsualShare>
  void add_share(config::Fault fault, const Reach& reach, bool of_node, double carried, const With& with_share,
                 const UsualShare& usual_share) {
    const double part = share_that_fits(reach.affected, [&](double s) { return with_share(s / carried); });
    const double share = part / carried;
    if (part >= 1 || share > 1 || share < (1 - as_usual) * least_share) return;
    const std::optional<double> usual = usual_share(share);
    const double left = usual.value_or(share);
    found_.push_back({fault, with_share(left), reach.places, of_node, left, usual.has_value()});
  }

  void add_slow_link(const Reach& nodes) {
    constexpr int usual_rails = 8;
    const int rails = network_.nics_of_node > 0 ? network_.nics_of_node : usual_rails;
    const auto with_link = [&](double share) {
      return with(known_, &config::Faults::slow_links, config::SlowLink{nodes.places.front(), share});
    };
    add_share(config::Fault::slow_link, nodes, true, 1, with_link,
              [&](double share) { return of_rails(share, rails); });
  }

  void add_narrow_pcie(const Reach& reach, bool of_node) {
    const int place = reach.places.front();
    const auto with_pcie = [&](double left) {
      return with(known_, &config::Faults::narrow_pcie,
                  config::NarrowPcie{of_node ? -1 : place, of_node ? place : -1, left});
    };
    constexpr double little = 1e-3;
    const sim::Condition narrow =
        sim::condition_of(with_pcie(little), *experiment_.hardware, network_, *experiment_.calibration);
    const auto first_there = std::ranges::find(network_.node_of, place) - network_.node_of.begin();
    const double carried = narrow.network_of(of_node ? static_cast<int>(first_there) : place) / little;
    add_share(config::Fault::pcie_downgraded, reach, of_node, carried, with_pcie, of_lanes);
  }

  Suspects& suspects_;
  const Picture& measured_;
  const config::Faults& known_;
  const config::Experiment& experiment_;
  const sim::Network network_;
  std::vector<Hypothesis> found_;
};

}  // namespace

std::optional<double> solve(double measured, double at_1, double guess, double most,
                            const std::function<double(double)>& length, double tolerance, int steps) {
  double x0 = 1, l0 = at_1, x1 = std::min(guess, most), l1 = length(x1);
  while (l1 <= l0 * (1 + tolerance) && x1 < most) {  // not yet the narrowest place
    x1 = std::min(4 * x1, most);
    l1 = length(x1);
  }
  for (int i = 0; i < steps && std::abs(l1 - measured) > tolerance * measured && l1 != l0; ++i) {
    const double next = std::clamp(x1 + (measured - l1) * (x1 - x0) / (l1 - l0), 1.0, most);
    x0 = x1;
    l0 = l1;
    x1 = next;
    l1 = length(x1);
  }
  return l1 > at_1 && x1 > 1 ? std::optional(x1) : std::nullopt;
}

const Picture& Suspects::predicted(const config::Faults& faults, double slower) {
  for (const Known& known : simulated_) {
    if (known.faults == faults && known.slower == slower) return known.picture;
  }
  const store::Result result = model_.predict(faults, slower);
  simulated_.push_back({faults, slower, picture_of(result, analysis::break_down(result).front())});
  return simulated_.back().picture;
}

double Suspects::slowness(const config::Faults& faults) {
  const double slower = common_slowness(measured_, predicted(faults, 1));
  return std::abs(slower - 1) < alike ? 1 : slower;
}

double Suspects::unexplained_s(const config::Faults& faults) {
  const Picture& expected = fitted(faults);
  double seconds = 0;
  for (std::size_t rank = 0; rank < expected.ranks.size(); ++rank) {
    seconds += std::abs(measured_.ranks[rank].computes_s - expected.ranks[rank].computes_s) +
               std::abs(measured_.ranks[rank].communicates_s - expected.ranks[rank].communicates_s) +
               std::abs(measured_.ranks[rank].waits_s - expected.ranks[rank].waits_s);
  }
  if (!expected.ranks.empty()) seconds /= static_cast<double>(expected.ranks.size());
  for (const analysis::KindTime& kind : measured_.kinds) {
    if (!analysis::is_communication(kind.kind)) continue;
    const auto there =
        std::ranges::find_if(expected.kinds, [&](const auto& other) { return other.is_same_kind(kind); });
    seconds += std::abs(kind.takes_s - (there == expected.kinds.end() ? 0 : there->takes_s));
  }
  return seconds;
}

std::vector<Hypothesis> hypotheses(Suspects& suspects, const config::Faults& known) {
  return Candidates(suspects, known).all();
}

Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown) {
  Picture picture{breakdown.mean.step_s, std::vector<RankTime>(result.rank_count()), breakdown.mean.kinds};
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != breakdown.case_index || split.rank < 0 || split.rank >= result.ranks) continue;
    double waits_s = 0;  // NaN: not known
    for (const double s : {split.waiting_s, split.bubble_s}) waits_s += std::isfinite(s) ? s : 0;
    picture.ranks[split.rank] = {split.compute_s, std::max(0.0, split.communication_s - waits_s), waits_s};
  }
  return picture;
}

}  // namespace harness::explain
