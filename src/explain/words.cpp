#include "explain/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"

namespace harness::explain {
namespace {

// "node 5 (gpu-005)", "one of nodes 0 to 15", "one of ranks 5, 13, 21, …"
std::string place_words(const Hypothesis& h, const store::Result& result) {
  const char* what = h.of_node ? "node" : "rank";
  if (h.places.size() > 1) {
    const bool in_a_row = h.places.back() - h.places.front() + 1 == std::ssize(h.places);
    if (in_a_row && h.places.size() > 2)
      return fmt::format("one of the {}s {} to {}", what, h.places.front(), h.places.back());
    constexpr std::size_t most_named = 4;
    std::vector<std::string> names;
    for (const int place : h.places) names.push_back(std::to_string(place));
    return fmt::format("one of the {}s {}", what, join_first(names, most_named));
  }
  const int place = h.places.front();
  const auto is_it = [&](const store::ResultRank& row) { return (h.of_node ? row.node : row.rank) == place; };
  const auto row = std::ranges::find_if(result.rank_table, is_it);
  const std::string host = row == result.rank_table.end() || row->host.empty() ? "" : fmt::format(" ({})", row->host);
  return fmt::format("{} {}{}", what, place, host);
}

}  // namespace

std::string in_words(const Hypothesis& h, const store::Result& result) {
  switch (h.fault) {
    case config::Fault::slow_gpu:
      return fmt::format("the GPU of {} computes at {} of its clock", place_words(h, result), percent(h.left, 0));
    case config::Fault::slow_link:
      return fmt::format("{} has {} of its network", place_words(h, result), percent(h.left, 0));
    case config::Fault::pcie_downgraded:
      return fmt::format("the PCIe links of {} carry {} of what they should", place_words(h, result),
                         percent(h.left, 0));
    case config::Fault::socket_fallback:
      return fmt::format("NCCL sends over TCP, {:.2g} GB/s a node", h.left / 1e9);
    case config::Fault::no_gpudirect:
      return "what leaves a node is copied through its memory, without GPUDirect";
    case config::Fault::acs_on:
      return "PCIe's access control sends what leaves a node through the CPU";
    case config::Fault::tensor_across_nodes:
      return "the ranks are dealt to the nodes one by one, so that neighbours stand on different nodes";
  }
  return "";
}

const std::vector<std::string_view>& checks_of(config::Fault fault) {
  using enum config::Fault;
  static const std::map<config::Fault, std::vector<std::string_view>> checks{
      {slow_gpu, {"load.products", "load.clocks", "gpu.slowed", "gpu.temperature", "gpu.power"}},
      {slow_link, {"load.pairs", "ib.rate", "ib.state", "nccl.rails", "same.rate", "same.ports", "ib.flaps"}},
      {pcie_downgraded, {"pcie.width", "pcie.speed", "ib.pcie", "load.pcie", "load.host_copies"}},
      {socket_fallback, {"nccl.network", "nccl.plugin", "nccl.plugin_file", "ib.verbs", "env.devices"}},
      {no_gpudirect, {"nccl.gpu_direct", "gdr.module", "gdr.dmabuf"}},
      {acs_on, {"pcie.acs"}},
      {tensor_across_nodes, {}}};
  return checks.at(fault);
}

}  // namespace harness::explain
