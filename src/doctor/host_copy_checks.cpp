// Copies between hosts and GPUs, all at once: which are slower than the others.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/median.h"
#include "base/text.h"
#include "doctor/load_stage.h"

namespace harness::doctor {
namespace {

// Half of the lanes, or a slower generation, halve the rate: below 70 % of the usual one something is wrong with a
// link. Memory of another NUMA node, or an IOMMU that translates, costs less.
constexpr Tolerance copies_tolerance{0.85, 0.7, 0.7};

struct CopyWay {
  std::string_view words;
  double machine::HostCopies::*rate;
};
constexpr std::array<CopyWay, 3> copy_ways{{{"to the GPU", &machine::HostCopies::to_device_bytes_per_s},
                                            {"from the GPU", &machine::HostCopies::from_device_bytes_per_s},
                                            {"both ways at once", &machine::HostCopies::both_bytes_per_s}}};

// As /sys writes its address: a device is "0000:1B:00.0 NVIDIA H100 80GB HBM3".
std::string gpu_address(const std::string& device) {
  return lower(device.substr(0, device.find(' ')));
}

struct MeasuredWay {
  std::string_view words;
  std::vector<double> rates;  // by rank
  Likeness likeness;
};

// Nothing where not all was measured.
std::vector<MeasuredWay> measured_ways(const Load& load) {
  std::vector<MeasuredWay> ways;
  for (const CopyWay& way : copy_ways) {
    std::vector<double> rates;
    for (const Load::RankLoad& rank : load.ranks) rates.push_back(rank.host_copies.*way.rate);
    if (rates.empty() || std::ranges::any_of(rates, [](double rate) { return !(rate > 0); })) return {};
    ways.push_back({way.words, rates, compare_rates(rates, copies_tolerance)});
  }
  return ways;
}

std::string numbers_in_words(const std::vector<Node>& nodes, const std::vector<MeasuredWay>& ways) {
  std::vector<std::string> usual;
  for (const MeasuredWay& way : ways) usual.push_back(fmt::format("{} {}", rate_text(median(way.rates)), way.words));
  const MeasuredWay& first = ways.front();
  const std::size_t slowest = first.likeness.lowest;
  return fmt::format("host and GPU copy, on all ranks at once: {}; slowest: {} with {} {}", join(usual, ", "),
                     name_of_rank(nodes, static_cast<int>(slowest)), rate_text(first.rates[slowest]), first.words);
}

}  // namespace

std::vector<StageFinding> judge_host_copies(const std::vector<Node>& nodes, const Load& load) {
  const std::vector<MeasuredWay> ways = measured_ways(load);
  if (ways.empty()) return {};
  std::map<std::size_t, Finding> slow;  // by rank
  for (const MeasuredWay& way : ways) {
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
  said.push_back({host_copies_check().id, {Verdict::info, numbers_in_words(nodes, ways), ""}, ""});
  return said;
}

About host_copies_check() {
  return {"load.host_copies", "do all GPUs copy to and from their hosts equally quickly",
          "copies of pinned memory, all ranks at once", Verdict::fail, "docs/doctor.md"};
}

}  // namespace harness::doctor
