// Copies between hosts and GPUs, all at once: which are slower than the others, or than their links carry.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/load_stage.h"

namespace harness::doctor {
namespace {

// Half of the lanes, or a slower generation, halve the rate: below 70 % of the usual one something is wrong with a
// link. Memory of another NUMA node, or an IOMMU that translates, costs less.
constexpr Tolerance copies_tolerance{0.85, 0.7, 0.7};

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

struct CopyWay {
  std::string_view words;
  double machine::HostCopies::*rate;
  bool of_one_link;  // what both directions reach together, the host's memory bounds, and no link alone
};
constexpr std::array<CopyWay, 3> copy_ways{{{"to the GPU", &machine::HostCopies::to_device_bytes_per_s, true},
                                            {"from the GPU", &machine::HostCopies::from_device_bytes_per_s, true},
                                            {"both ways at once", &machine::HostCopies::both_bytes_per_s, false}}};

// As /sys writes its address: a device is "0000:1B:00.0 NVIDIA H100 80GB HBM3".
std::string gpu_address(const std::string& device) {
  return lower(device.substr(0, device.find(' ')));
}

// By rank: what its links carry in one direction while all GPUs of its node copy; NaN: not known.
std::vector<double> link_limits(const std::vector<Node>& nodes, const std::vector<std::size_t>& node_of,
                                const Load& load) {
  std::vector<std::vector<std::string>> busy(nodes.size());
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank)
    busy[node_of.at(rank)].push_back(gpu_address(load.ranks[rank].device));
  std::vector<double> limits;
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    const std::size_t node = node_of.at(rank);
    const std::string gpu = gpu_address(load.ranks[rank].device);
    limits.push_back(host_link_bytes_per_s(nodes[node].facts, gpu, busy[node]).value_or(not_known));
  }
  return limits;
}

double median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return median(values);
}

// One way of copying. GPUs whose links carry less, or which share one, are not slow for it: where all limits are known,
// ranks are compared by their shares of these.
class WayJudge {
 public:
  WayJudge(const CopyWay& way, const Load& load, const std::vector<double>& limits) : words_(way.words) {
    for (const Load::RankLoad& rank : load.ranks) {
      const double rate = rank.host_copies.*way.rate;
      rates_.push_back(rate > 0 ? rate : not_known);
    }
    const bool by_shares = std::ranges::none_of(limits, [](double limit) { return std::isnan(limit); });
    std::vector<double> compared;
    for (std::size_t rank = 0; rank < rates_.size(); ++rank) {
      units_.push_back(by_shares ? limits[rank] : 1);
      compared.push_back(rates_[rank] / units_[rank]);
      shares_.push_back(way.of_one_link ? rates_[rank] / limits[rank] : not_known);
    }
    likeness_ = compare_rates(compared, copies_tolerance);
    usual_share_ = median_of_known(shares_);
    verdicts_.assign(rates_.size(), Verdict::pass);
    for (const Slow& slow : likeness_.slow) verdicts_[slow.at] = slow.verdict;
  }

  bool measured() const { return !std::isnan(likeness_.usual); }
  /// The median share of what links carry; NaN: not known.
  double usual_share() const { return usual_share_; }
  /// Whether that is less than anything sound reaches; then no rank is named for it.
  bool is_low_everywhere() const { return usual_share_ < sound_share; }
  /// "55 GB/s to the GPU".
  std::string usual() const { return fmt::format("{} {}", rate_text(median_of_known(rates_)), words_); }
  std::size_t slowest() const { return likeness_.lowest; }
  std::string of(std::size_t rank) const { return fmt::format("{} {}", rate_text(rates_[rank]), words_); }

  /// Nothing where a rank is as quick as it should be.
  std::optional<Finding> judge(std::size_t rank) const {
    const bool named = verdicts_[rank] != Verdict::pass, low = shares_[rank] < sound_share && !is_low_everywhere();
    if (!named && !low) return std::nullopt;
    std::vector<std::string> notes;
    if (named) notes.push_back("the fast ones " + rate_text(likeness_.usual * units_[rank]));
    if (!std::isnan(shares_[rank])) notes.push_back(percent(shares_[rank], 0) + " of what its links carry");
    return Finding{named ? verdicts_[rank] : Verdict::warn, fmt::format("{} ({})", of(rank), join(notes, "; ")), ""};
  }

 private:
  std::string_view words_;
  std::vector<double> rates_, units_, shares_;  // by rank; NaN: not known. units_: what rates are compared in
  Likeness likeness_;
  double usual_share_ = not_known;
  std::vector<Verdict> verdicts_;  // by rank, compared with the others
};

// The faults of a rank's copies, all ways together.
std::optional<Finding> judge_rank(const Load& load, const std::vector<WayJudge>& ways, std::size_t rank) {
  Verdict worst = Verdict::pass;
  std::vector<std::string> parts;
  for (const WayJudge& way : ways) {
    const auto finding = way.judge(rank);
    if (!finding) continue;
    worst = std::min(worst, finding->verdict);
    parts.push_back(finding->evidence);
  }
  if (parts.empty()) return std::nullopt;
  return Finding{
      worst,
      fmt::format("rank {} with GPU {} copies {}", rank, gpu_address(load.ranks[rank].device), join(parts, ", ")),
      "look at pcie.width and load.pcie of this GPU, at topo.numa and rank.near_gpu for the memory that it copies, and "
      "at pcie.iommu"};
}

StageFinding numbers(const std::vector<Node>& nodes, const std::vector<WayJudge>& ways) {
  std::vector<std::string> usual, shares;
  bool low = false;
  for (const WayJudge& way : ways) {
    usual.push_back(way.usual());
    if (const double share = way.usual_share(); !std::isnan(share)) shares.push_back(percent(share, 0));
    low = low || way.is_low_everywhere();
  }
  const WayJudge& first = ways.front();
  const auto slowest = static_cast<int>(first.slowest());
  const std::string evidence =
      fmt::format("host and GPU copy, on all ranks at once: {}{}; slowest: {} with {}", join(usual, ", "),
                  shares.empty() ? std::string() : fmt::format(" ({} of what the links carry)", join(shares, " and ")),
                  name_of_rank(nodes, slowest), first.of(first.slowest()));
  const std::string remedy = low ? "most ranks are slow: look at pcie.width, pcie.iommu and rank.near_gpu, and at what "
                                   "else uses the memory of the hosts, which all GPUs of a host share"
                                 : "";
  return {host_copies_check().id, {low ? Verdict::warn : Verdict::info, evidence, remedy}, ""};
}

}  // namespace

std::vector<StageFinding> judge_host_copies(const std::vector<Node>& nodes, const Load& load) {
  const std::vector<std::size_t> node_of = nodes_of_ranks(nodes);
  const std::vector<double> limits = link_limits(nodes, node_of, load);
  std::vector<WayJudge> ways;
  for (const CopyWay& way : copy_ways) {
    ways.emplace_back(way, load, limits);
    if (!ways.back().measured()) return {};
  }
  std::vector<StageFinding> said;
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    if (auto slow = judge_rank(load, ways, rank))
      said.push_back({host_copies_check().id, *std::move(slow), nodes[node_of.at(rank)].host});
  }
  said.push_back(numbers(nodes, ways));
  return said;
}

About host_copies_check() {
  return {"load.host_copies", "do all GPUs copy to and from their hosts equally quickly, and as their links allow",
          "copies of pinned memory, all ranks at once; /sys/bus/pci/devices/*/max_link_speed, max_link_width",
          Verdict::fail, "docs/doctor.md"};
}

}  // namespace harness::doctor
