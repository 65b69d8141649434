#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "evidence/devices.h"
#include "nccl/topology.h"

// NCCL's own XML (src/graph/topo.cc, search.cc), by nccl/topology.h.

namespace harness::evidence {
namespace {

const char* algorithm_of(std::string_view id) {
  static const std::map<std::string_view, const char*> names{
      {"0", "ring"}, {"1", "tree"}, {"2", "collnet"}, {"3", "nvls"}, {"4", "collnet direct"}};
  const auto found = names.find(id);
  return found == names.end() ? "unknown" : found->second;
}

}  // namespace

Answer nccl_graphs(std::string_view text) {
  Answer out;
  out.object = "graph";
  out.kind = "nccl graph";
  std::vector<std::string> parts, adapters;
  std::string first;
  bool in_first = false;
  for (const nccl::Tag& tag : nccl::tags_of(text)) {
    if (tag.name == "graph" && !tag.closes) {
      const double channels = tag.number("nchannels"), speed = tag.number("speedintra");
      std::string part = fmt::format("{} {}: ", tag.text("id"), algorithm_of(tag.text("id")));
      if (channels <= 0) {
        part += "none";
      } else {
        const std::string between = tag.text("typeintra");
        part += fmt::format("{:g} channels x {:g} GB/s, {} inside, adapters at {}", channels, speed,
                            between == "NVL" ? "NVLink" : between, tag.text("typeinter"));
        if (first.empty()) first = fmt::format("{:g} channels of {:g} GB/s", channels, speed);
      }
      if (parts.size() < 32) parts.push_back(part);
      in_first = parts.size() == 1 && !tag.alone;
    } else if (tag.name == "net" && in_first) {
      const std::string dev = tag.text("dev");
      if (std::ranges::find(adapters, dev) == adapters.end() && adapters.size() < 64) adapters.push_back(dev);
    } else if (tag.name == "graph") {
      in_first = false;
    }
  }
  if (parts.empty()) fail("it holds no graph of NCCL");
  out.facts = {{"kind", out.kind}, {"graphs", join(parts, "; ")}};
  if (!adapters.empty())
    out.facts.emplace_back("adapters", and_list(adapters) + (adapters.size() > 1 ? ", one per channel" : ""));
  for (const std::string& part : parts) out.evidence.emplace_back("graph", part);
  if (!adapters.empty()) out.evidence.emplace_back("adapters", and_list(adapters));
  out.headline = first.empty() ? "NCCL found no algorithm that is possible here" : "rings: " + first;
  out.notes.emplace_back(
      "channels x GB/s is what NCCL plans with inside a node; none: that algorithm is impossible here");
  return out;
}

Answer nccl_topology(std::string_view text) {
  const nccl::Topology topology = nccl::parse_topology(text);
  const std::vector<nccl::Topology::Device>&gpus = topology.gpus, &adapters = topology.adapters;
  if (!topology.any_cpu && gpus.empty() && adapters.empty()) fail("it holds no topology of NCCL");

  Answer out;
  out.object = "topology";
  out.kind = "nccl topology";
  constexpr double giga = 1e9, bits = 8;
  std::set<double> links;
  for (const auto& gpu : gpus) links.insert(gpu.nvlinks);
  std::string described = std::to_string(gpus.size());
  if (!gpus.empty())
    described += fmt::format(" (compute capability {:.1f}, {:g} NVLinks{})", gpus.front().compute_capability / 10,
                             gpus.front().nvlinks, links.size() > 1 ? " on the first" : "");
  if (links.size() > 1) out.problem("GPUs differ in their number of NVLinks", "nvidia-smi nvlink -s");
  std::vector<std::string> named;
  for (const auto& adapter : adapters) {
    std::string name = fmt::format("{} {:g} Gb/s", adapter.name, adapter.bits_per_s / giga);
    const auto near =
        std::ranges::find_if(gpus, [&](const auto& gpu) { return nccl::shared_bridges(gpu, adapter) > 0; });
    if (near != gpus.end()) name += fmt::format(", same switch as GPU {}", near->number);
    named.push_back(name);
    out.evidence.emplace_back("adapter", name);
  }
  for (const auto& [adapter, link] : nccl::narrow_links(topology)) {
    out.problem(fmt::format("{} has {:g} lanes of PCIe at {:g} GT/s (about {:.1f} GB/s) for a port of {:g} GB/s",
                            adapter->name, link->lanes, link->gigatransfers, link->bits_per_s / bits / giga,
                            adapter->bits_per_s / bits / giga),
                "reseat the card, try another slot");
  }
  for (const auto& adapter : adapters) {
    if (!adapter.gpu_direct) out.problem(adapter.name + " has no GPUDirect RDMA", "nvidia-peermem or DMA-BUF");
  }
  if (topology.cpu_without_arch) out.problem("a <cpu> has no arch", "NCCL cannot read such a file: write it again");
  out.facts = {{"kind", out.kind}, {"gpus", described}, {"nics", named.empty() ? "none" : join(named, "; ")}};
  out.evidence.insert(out.evidence.begin(), {"GPUs", described});
  if (out.headline.empty()) {
    out.headline = fmt::format("{} and {}: no PCIe link is narrower than a port",
                               plural(static_cast<std::int64_t>(gpus.size()), "GPU"),
                               plural(static_cast<std::int64_t>(adapters.size()), "adapter"));
  }
  out.next.emplace_back("./harness doctor --stages static     # on this node: links, GPUDirect, NUMA");
  return out;
}

}  // namespace harness::evidence
