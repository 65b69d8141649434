// Copies between hosts and GPUs, all at once: which are slower than the others, and whether all are than their links.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/load_stage.h"
#include "nccl/topology.h"

namespace harness::doctor {
namespace {

// Half of the lanes, or a slower generation, halve the rate: below 70 % of the usual one something is wrong with a
// link. Memory of another NUMA node, or an IOMMU that translates, costs less.
constexpr Tolerance copies_tolerance{0.85, 0.7, 0.7};

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

// The rate of a GPU's link in one direction, in bytes/s, shared with the GPUs below the same root port. NaN: not known,
// as in virtual machines, or not on PCIe (Grace).
double link_share(const Facts& facts, const std::string& gpu) {
  const auto width = facts.number("gpu/" + gpu + "/width_of_link"),
             speed = facts.number("gpu/" + gpu + "/speed_of_link");
  const std::vector<std::string> path = pci_path(facts, "gpu/" + gpu);
  if (is_virtual(facts) || is_arm(facts) || !width || !speed || path.empty())
    return std::numeric_limits<double>::quiet_NaN();
  const auto shares = [&](const std::string& other) {
    const std::vector<std::string> way = pci_path(facts, "gpu/" + other);
    return !way.empty() && way.front() == path.front();
  };
  const auto sharing = static_cast<double>(std::ranges::count_if(gpus_of(facts), shares));
  return nccl::pcie_bits_per_s(*speed, *width) / 8 / sharing;
}

// The median of a way's rates as a share of what the links carry; NaN: not known of all.
double share_of_links(const std::vector<double>& rates, const std::vector<double>& links) {
  std::vector<double> shares;
  for (std::size_t rank = 0; rank < rates.size(); ++rank) shares.push_back(rates[rank] / links[rank]);
  const bool known = std::ranges::none_of(shares, [](double share) { return std::isnan(share); });
  return known ? median(shares) : std::numeric_limits<double>::quiet_NaN();
}

struct Measured {
  std::string_view words;
  std::vector<double> rates;  // by rank
  Likeness likeness;
  double share;  // of the links, see above
};

// Nothing where not all was measured.
std::vector<Measured> measured_ways(const std::vector<Node>& nodes, const Load& load) {
  const std::vector<std::size_t> node_of = nodes_of_ranks(nodes);
  std::vector<double> links;
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank)
    links.push_back(link_share(nodes[node_of.at(rank)].facts, gpu_address(load.ranks[rank].device)));
  std::vector<Measured> ways;
  for (const CopyWay& way : copy_ways) {
    std::vector<double> rates;
    for (const Load::RankLoad& rank : load.ranks) rates.push_back(rank.host_copies.*way.rate);
    if (rates.empty() || std::ranges::any_of(rates, [](double rate) { return !(rate > 0); })) return {};
    const double share = way.of_one_link ? share_of_links(rates, links) : std::numeric_limits<double>::quiet_NaN();
    ways.push_back({way.words, rates, compare_rates(rates, copies_tolerance), share});
  }
  return ways;
}

Finding numbers(const std::vector<Node>& nodes, const std::vector<Measured>& ways) {
  std::vector<std::string> usual, shares;
  for (const Measured& way : ways) {
    usual.push_back(fmt::format("{} {}", rate_text(median(way.rates)), way.words));
    if (!std::isnan(way.share)) shares.push_back(percent(way.share, 0));
  }
  const Measured& first = ways.front();
  const std::size_t slowest = first.likeness.lowest;
  const std::string evidence =
      fmt::format("host and GPU copy, on all ranks at once: {}{}; slowest: {} with {} {}", join(usual, ", "),
                  shares.empty() ? "" : fmt::format(" ({} of what the links carry)", join(shares, " and ")),
                  name_of_rank(nodes, static_cast<int>(slowest)), rate_text(first.rates[slowest]), first.words);
  if (std::ranges::none_of(ways, [](const Measured& way) { return way.share < sound_share; }))
    return {Verdict::info, evidence, ""};
  return {Verdict::warn, evidence,
          "most ranks are slow: look at pcie.width, pcie.iommu and rank.near_gpu, and at what else uses the memory of "
          "the hosts, which all GPUs of a host share"};
}

}  // namespace

std::vector<StageFinding> judge_host_copies(const std::vector<Node>& nodes, const Load& load) {
  const std::vector<Measured> ways = measured_ways(nodes, load);
  if (ways.empty()) return {};
  std::map<std::size_t, Finding> slow;  // by rank
  for (const Measured& way : ways) {
    for (const Slow& one : way.likeness.slow) {
      Finding& finding = slow.try_emplace(one.at, Finding{Verdict::pass, "", ""}).first->second;
      finding.verdict = std::min(finding.verdict, one.verdict);
      finding.evidence += fmt::format("{}{} {} (the fast ones {})", finding.evidence.empty() ? "" : ", ",
                                      rate_text(way.rates[one.at]), way.words, rate_text(way.likeness.usual));
    }
  }
  const std::vector<std::size_t> node_of = nodes_of_ranks(nodes);
  std::vector<StageFinding> said;
  for (auto& [rank, finding] : slow) {
    finding.evidence =
        fmt::format("rank {} with GPU {} copies {}", rank, gpu_address(load.ranks[rank].device), finding.evidence);
    finding.remedy =
        "look at pcie.width of this GPU, at topo.numa and rank.near_gpu for the memory that it copies, and at "
        "pcie.iommu";
    said.push_back({host_copies_check().id, finding, nodes[node_of.at(rank)].host});
  }
  said.push_back({host_copies_check().id, numbers(nodes, ways), ""});
  return said;
}

About host_copies_check() {
  return {"load.host_copies", "do all GPUs copy to and from their hosts equally quickly, and as their links allow",
          "copies of pinned memory, all ranks at once; /sys/bus/pci/devices/*/max_link_speed, max_link_width",
          Verdict::fail, "docs/doctor.md"};
}

}  // namespace harness::doctor
