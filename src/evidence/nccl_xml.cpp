#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "evidence/devices.h"

// NCCL's own XML (src/graph/xml.cc, topo.cc, search.cc): a tag per line, attributes in quotes, no text between.

namespace harness::evidence {
namespace {

struct Tag {
  std::string name;
  std::map<std::string, std::string> attributes;
  bool closes = false, alone = false;

  std::string text(const char* key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
  double number(const char* key) const { return number_after(text(key), "").value_or(0); }
};

constexpr std::size_t most_tags = 100'000, deepest = 64;

std::vector<Tag> tags_of(std::string_view text) {
  std::vector<Tag> tags;
  Cursor c{text};
  while (c.after("<") && tags.size() < most_tags) {
    std::string_view inside = c.until(">");
    if (inside.starts_with('?') || inside.starts_with('!')) continue;
    Tag tag;
    tag.closes = inside.starts_with('/');
    if (tag.closes) inside.remove_prefix(1);
    tag.alone = inside.ends_with('/');
    if (tag.alone) inside.remove_suffix(1);
    Cursor a{inside};
    tag.name = std::string(a.until(" \t\r\n"));
    while (tag.attributes.size() < 64) {
      const std::string name(trim(a.until("=")));
      if (!a.literal("=\"")) break;
      tag.attributes[name] = std::string(a.until("\""));
      a.literal("\"");
      while (a.literal(" ") || a.literal("\n") || a.literal("\t")) {
      }
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

const char* algorithm_of(std::string_view id) {
  static const std::map<std::string_view, const char*> names{
      {"0", "ring"}, {"1", "tree"}, {"2", "collnet"}, {"3", "nvls"}, {"4", "collnet direct"}};
  const auto found = names.find(id);
  return found == names.end() ? "unknown" : found->second;
}

struct Gpu {
  std::int64_t dev = 0;
  double sm = 0, links = 0;
  std::vector<std::string> path;  // bus ids from the NUMA node down
};

struct Adapter {
  std::string name;
  double bytes_per_s = 0;  // of the port
  bool direct = true;
  double lanes = 0, transfers = 0;  // of the narrowest link on the way: PCIe lanes, GT/s
  std::vector<std::string> path;
};

// Bytes per second of a PCIe link: 128b/130b from 8 GT/s on, 8b/10b before.
double pcie_bytes_per_s(double lanes, double giga_transfers) {
  constexpr double giga = 1e9;
  const double coding = giga_transfers >= 8 ? 128.0 / 130.0 : 0.8;
  return lanes * giga_transfers * giga * coding / 8;
}

}  // namespace

Answer nccl_graphs(std::string_view text) {
  Answer out;
  out.object = "graph";
  out.kind = "nccl graph";
  std::vector<std::string> parts, adapters;
  std::string first;
  bool in_first = false;
  for (const Tag& tag : tags_of(text)) {
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
  std::vector<Gpu> gpus;
  std::vector<Adapter> adapters;
  std::vector<Tag> open;
  bool any_cpu = false, cpu_without_arch = false;
  for (Tag& tag : tags_of(text)) {
    if (tag.closes) {
      if (!open.empty()) open.pop_back();
      continue;
    }
    std::vector<std::string> path;
    for (const Tag& above : open) {
      if (above.name == "pci") path.push_back(above.text("busid"));
    }
    if (tag.name == "cpu") {
      any_cpu = true;
      cpu_without_arch = cpu_without_arch || tag.text("arch").empty();
    } else if (tag.name == "gpu") {
      gpus.push_back({static_cast<std::int64_t>(std::clamp(tag.number("dev"), -1.0, 1e6)), tag.number("sm"), 0, path});
    } else if (tag.name == "nvlink" && !gpus.empty()) {
      gpus.back().links += tag.number("count");
    } else if (tag.name == "net") {
      constexpr double bits = 8, mega = 1e6;
      Adapter adapter{tag.text("name"), tag.number("speed") * mega / bits, tag.text("gdr") != "0", 0, 0, path};
      for (const Tag& above : open) {
        const double lanes = above.number("link_width"), rate = above.number("link_speed");
        if (above.name != "pci" || lanes <= 0 || rate <= 0) continue;
        if (adapter.lanes > 0 && pcie_bytes_per_s(lanes, rate) >= pcie_bytes_per_s(adapter.lanes, adapter.transfers))
          continue;
        adapter.lanes = lanes;
        adapter.transfers = rate;
      }
      adapters.push_back(adapter);
    }
    if (!tag.alone && open.size() < deepest) open.push_back(std::move(tag));
  }
  if (!any_cpu && gpus.empty() && adapters.empty()) fail("it holds no topology of NCCL");

  Answer out;
  out.object = "topology";
  out.kind = "nccl topology";
  constexpr double giga = 1e9;
  std::set<double> links;
  for (const Gpu& gpu : gpus) links.insert(gpu.links);
  std::string described = std::to_string(gpus.size());
  if (!gpus.empty())
    described += fmt::format(" (compute capability {:.1f}, {:g} NVLinks{})", gpus.front().sm / 10, gpus.front().links,
                             links.size() > 1 ? " on the first" : "");
  if (links.size() > 1) out.problem("GPUs differ in their number of NVLinks", "nvidia-smi nvlink -s");
  std::vector<std::string> named;
  for (const Adapter& adapter : adapters) {
    std::string name = fmt::format("{} {:g} Gb/s", adapter.name, 8 * adapter.bytes_per_s / giga);
    for (const Gpu& gpu : gpus) {
      if (!gpu.path.empty() && !adapter.path.empty() && gpu.path.size() > 1 &&
          gpu.path.front() == adapter.path.front()) {
        name += fmt::format(", same switch as GPU {}", gpu.dev);
        break;
      }
    }
    named.push_back(name);
    out.evidence.emplace_back("adapter", name);
    const double link = pcie_bytes_per_s(adapter.lanes, adapter.transfers);
    if (link > 0 && link < 0.95 * adapter.bytes_per_s) {
      out.problem(fmt::format("{} has {:g} lanes of PCIe at {:g} GT/s (about {:.1f} GB/s) for a port of {:g} GB/s",
                              adapter.name, adapter.lanes, adapter.transfers, link / giga, adapter.bytes_per_s / giga),
                  "reseat the card, try another slot");
    }
    if (!adapter.direct) out.problem(adapter.name + " has no GPUDirect RDMA", "nvidia-peermem or DMA-BUF");
  }
  if (cpu_without_arch) out.problem("a <cpu> has no arch", "NCCL cannot read such a file: write it again");
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
