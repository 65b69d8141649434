#include "explain/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/part.h"
#include "sim/rank_classes.h"

namespace harness::explain {

// Nodes or ranks whose slow network affects the same ranks: those that communicate across nodes with them or with a
// rank on them. The step cannot tell these places apart.
struct Reach {
  std::vector<int> places;     // ascending
  std::vector<bool> affected;  // by rank
};

namespace {

using program::AxisSet;

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

// Returns the reach that best fits the ranks' excess communication, by least squares; nullptr if there is none.
const Reach* best_fit(const std::vector<Reach>& reaches, const std::vector<double>& excess_s) {
  const Reach* best = nullptr;
  double most = 0;
  for (const Reach& reach : reaches) {
    double sum = 0;
    int ranks = 0;
    for (std::size_t rank = 0; rank < std::min(excess_s.size(), reach.affected.size()); ++rank) {
      if (!reach.affected[rank]) continue;
      sum += excess_s[rank];
      ++ranks;
    }
    // The reduction of the sum of squares if all affected ranks communicate longer by their mean excess.
    const double fall = sum > 0 && ranks > 0 ? sum * sum / ranks : 0;
    if (fall > most) {
      most = fall;
      best = &reach;
    }
  }
  return best;
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

double mean_communication(const Picture& picture, const std::vector<bool>& affected) {
  double sum = 0;
  int ranks = 0;
  for (std::size_t rank = 0; rank < std::min(picture.ranks.size(), affected.size()); ++rank) {
    if (!affected[rank]) continue;
    sum += picture.ranks[rank].communicates_s;
    ++ranks;
  }
  return ranks > 0 ? sum / ranks : 0;
}

// Returns the factor on computations in `measured` over `predicted`, of the median rank: a common factor says nothing
// about single ranks.
double common_slowness(const Picture& measured, const Picture& predicted) {
  std::vector<double> ratios;
  const std::size_t ranks = std::min(measured.ranks.size(), predicted.ranks.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (predicted.ranks[rank].computes_s > 0)
      ratios.push_back(measured.ranks[rank].computes_s / predicted.ranks[rank].computes_s);
  }
  if (ratios.empty()) return 1;
  // The lower of two middle values: of two ranks the faster counts as normal.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

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
  simulated_.push_back({faults, slower, picture_of(model_.predict(faults, slower))});
  return simulated_.back().picture;
}

double Suspects::slowness(const config::Faults& faults) {
  const double slower = common_slowness(measured_, predicted(faults, 1));
  return std::abs(slower - 1) < alike ? 1 : slower;
}

std::vector<Hypothesis> Suspects::beside(const config::Faults& known) {
  std::vector<Hypothesis> found;
  add_slow_gpu(known, found);
  // The placement of ranks is known; only how much of the step it explains is open.
  if (!known.tensor_across_nodes && !stand_node_by_node(model_.stood())) {
    Hypothesis dealt{.fault = config::Fault::tensor_across_nodes, .faults = known};
    dealt.faults.tensor_across_nodes = true;
    found.push_back(std::move(dealt));
  }
  add_network(known, found);
  return found;
}

void Suspects::add_slow_gpu(const config::Faults& known, std::vector<Hypothesis>& found) {
  const double slower = slowness(known);
  const Picture& expected = predicted(known, slower);
  int rank = -1;
  double most = 1 + least_excess;
  for (std::size_t r = 0; r < std::min(measured_.ranks.size(), expected.ranks.size()); ++r) {
    const double ratio = measured_.ranks[r].computes_s / expected.ranks[r].computes_s;
    if (ratio <= most) continue;
    most = ratio;
    rank = static_cast<int>(r);
  }
  if (rank < 0) return;
  const auto with = [&](double x) {
    config::Faults faults = known;
    faults.slow_gpus.push_back({rank, 1 / x});
    return faults;
  };
  const auto computes_s = [&](double x) {
    return predicted(with(x), slower).ranks[static_cast<std::size_t>(rank)].computes_s;
  };
  const double measured_s = measured_.ranks[static_cast<std::size_t>(rank)].computes_s,
               expected_s = expected.ranks[static_cast<std::size_t>(rank)].computes_s;
  constexpr double most_times = 50;
  const auto times = solve(measured_s, expected_s, measured_s / expected_s, most_times, computes_s);
  if (!times) return;
  found.push_back({config::Fault::slow_gpu, with(*times), {rank}, false, 1 / *times, true});
}

template <class With>
double Suspects::share_that_fits(const config::Faults& known, const std::vector<bool>& affected, const With& with) {
  constexpr double most_times = 1000;
  double share = 1, slower = slowness(known);
  // Computations also slow down beside long communications, which must not count as slowness: fit once more with it.
  constexpr int passes = 2;
  for (int pass = 0; pass < passes; ++pass) {
    const auto length = [&](double x) { return mean_communication(predicted(with(1 / x), slower), affected); };
    const auto times =
        solve(mean_communication(measured_, affected), mean_communication(predicted(known, slower), affected),
              1 / std::min(share, 0.5), most_times, length);
    if (!times) return 1;
    share = 1 / *times;
    const double now = slowness(with(share));
    if (std::abs(now - slower) < alike) break;
    slower = now;
  }
  return share;
}

void Suspects::add_network(const config::Faults& known, std::vector<Hypothesis>& found) {
  const config::Experiment& experiment = model_.reference().experiment;
  const sim::Network network = sim::network_of(experiment, config::places(known, model_.reference().node_of));
  if (!(network.node_bytes_per_s > 0) || known.socket_bytes_per_s > 0) return;  // TCP hides the rest
  const Picture& expected = fitted(known);
  std::vector<double> excess_s;
  for (std::size_t rank = 0; rank < std::min(measured_.ranks.size(), expected.ranks.size()); ++rank)
    excess_s.push_back(measured_.ranks[rank].communicates_s - expected.ranks[rank].communicates_s);
  const std::vector<Reach> of_nodes = reaches(model_.set(), network.node_of, true);
  const Reach* nodes = best_fit(of_nodes, excess_s);
  if (nodes == nullptr) return;
  const double expected_s = mean_communication(expected, nodes->affected);
  if (mean_communication(measured_, nodes->affected) < (1 + least_excess) * expected_s) return;
  add_everywhere(known, network, found);
  add_slow_link(known, network, *nodes, found);
  if (experiment.hardware->compute_capability == 0) return;  // the bandwidth of PCIe is then unknown
  add_narrow_pcie(known, network, *nodes, true, found);
  const std::vector<Reach> of_ranks = reaches(model_.set(), network.node_of, false);
  if (const Reach* ranks = best_fit(of_ranks, excess_s); ranks != nullptr)
    add_narrow_pcie(known, network, *ranks, false, found);
}

void Suspects::add_everywhere(const config::Faults& known, const sim::Network& network,
                              std::vector<Hypothesis>& found) {
  for (const config::Fault fault : {config::Fault::acs_on, config::Fault::no_gpudirect}) {
    bool config::Faults::*const is_on =
        fault == config::Fault::acs_on ? &config::Faults::acs_on : &config::Faults::no_gpudirect;
    if (known.*is_on) continue;
    Hypothesis h{.fault = fault, .faults = known};
    h.faults.*is_on = true;
    found.push_back(std::move(h));
  }
  const auto over_tcp = [&](double share) {
    config::Faults faults = known;
    faults.socket_bytes_per_s = share * network.node_bytes_per_s;
    return faults;
  };
  const double share = share_that_fits(known, std::vector<bool>(measured_.ranks.size(), true), over_tcp);
  const double rate = share * network.node_bytes_per_s;
  if (share >= 1 || rate > most_tcp_bytes_per_s) return;
  const bool usual = rate >= least_usual_tcp_bytes_per_s && rate <= most_usual_tcp_bytes_per_s;
  found.push_back({config::Fault::socket_fallback, over_tcp(share), {}, false, share, usual});
}

void Suspects::add_slow_link(const config::Faults& known, const sim::Network& network, const Reach& nodes,
                             std::vector<Hypothesis>& found) {
  constexpr int usual_rails = 8;
  const auto with_link = [&](double share) {
    config::Faults faults = known;
    faults.slow_links.push_back({nodes.places.front(), share});
    return faults;
  };
  const double share = share_that_fits(known, nodes.affected, with_link);
  if (share >= 1 || share < (1 - as_usual) * least_share) return;
  const auto usual = of_rails(share, network.nics_of_node > 0 ? network.nics_of_node : usual_rails);
  const double left = usual.value_or(share);
  found.push_back({config::Fault::slow_link, with_link(left), nodes.places, true, left, usual.has_value()});
}

void Suspects::add_narrow_pcie(const config::Faults& known, const sim::Network& network, const Reach& reach,
                               bool of_node, std::vector<Hypothesis>& found) {
  const int place = reach.places.front();
  const auto with_pcie = [&](double left) {
    config::Faults faults = known;
    faults.narrow_pcie.push_back({of_node ? -1 : place, of_node ? place : -1, left});
    return faults;
  };
  // The share of a rank's part of the network that all of its lanes carry.
  constexpr double little = 1e-3;
  const config::Experiment& experiment = model_.reference().experiment;
  const sim::Condition narrow =
      sim::condition_of(with_pcie(little), *experiment.hardware, network, *experiment.calibration);
  const auto first_there = std::ranges::find(network.node_of, place) - network.node_of.begin();
  const double carried = narrow.network_of(of_node ? static_cast<int>(first_there) : place) / little;
  const double part = share_that_fits(known, reach.affected, [&](double s) { return with_pcie(s / carried); });
  const double share = part / carried;
  if (part >= 1 || share > 1 || share < (1 - as_usual) * least_share) return;
  const auto usual = of_lanes(share);
  const double left = usual.value_or(share);
  found.push_back({config::Fault::pcie_downgraded, with_pcie(left), reach.places, of_node, left, usual.has_value()});
}

Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown) {
  Picture picture{breakdown.mean.step_s, {}, breakdown.mean.kinds};
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != breakdown.case_index || split.rank < 0 || split.rank >= result.ranks) continue;
    const auto rank = static_cast<std::size_t>(split.rank);
    if (rank >= picture.ranks.size()) picture.ranks.resize(rank + 1);
    double waits_s = 0;  // NaN: not known
    for (const double s : {split.waiting_s, split.bubble_s}) waits_s += std::isfinite(s) ? s : 0;
    picture.ranks[rank] = {split.compute_s, std::max(0.0, split.communication_s - waits_s), waits_s};
  }
  return picture;
}

Picture picture_of(const store::Result& predicted) {
  return picture_of(predicted, analysis::break_down(predicted).front());
}

double distance(const Picture& a, const Picture& b) {
  double seconds = 0;
  const std::size_t ranks = std::min(a.ranks.size(), b.ranks.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    seconds += std::abs(a.ranks[rank].computes_s - b.ranks[rank].computes_s) +
               std::abs(a.ranks[rank].communicates_s - b.ranks[rank].communicates_s) +
               std::abs(a.ranks[rank].waits_s - b.ranks[rank].waits_s);
  }
  if (ranks > 0) seconds /= static_cast<double>(ranks);
  for (const analysis::KindTime& kind : a.kinds) {
    if (!analysis::is_communication(kind.kind)) continue;
    const auto there = std::ranges::find_if(b.kinds, [&](const auto& other) { return other.is_same_kind(kind); });
    seconds += std::abs(kind.takes_s - (there == b.kinds.end() ? 0 : there->takes_s));
  }
  return seconds;
}

}  // namespace harness::explain
