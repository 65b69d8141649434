#include "nccl/topology.h"

#include <algorithm>
#include <span>

#include "base/text.h"

namespace harness::nccl {
namespace {

constexpr std::string_view blanks = " \t\r\n";  // NCCL leaves ends of lines inside of elements

Topology::Device device_of(const Tag& tag, const std::vector<Tag>& open, int systems, int cpus) {
  Topology::Device device;
  device.system = systems;
  device.cpu = cpus;
  device.number = static_cast<std::int64_t>(std::clamp(tag.number("dev"), -1.0, 1e6));
  device.gpu_direct = tag.text("gdr") != "0";
  for (const Tag& above : open) {
    if (above.name != "pci") continue;
    const double transfers = above.number("link_speed"), lanes = above.number("link_width");
    device.path.push_back({above.text("busid"), transfers, lanes, pcie_bits_per_s(transfers, lanes)});
  }
  return device;
}

// By adapter, the first link on the way down to it that traffic between it and GPUs passes: the one below the bridge at
// which they meet. Of the GPUs those count to which no other adapter is nearer.
std::vector<std::size_t> first_used_links(const Topology& topology) {
  std::vector<std::size_t> nearest_gpu(topology.adapters.size(), 0), first(topology.adapters.size(), 0);
  for (const Topology::Device& gpu : topology.gpus) {
    std::vector<std::size_t> shared;
    for (const Topology::Device& adapter : topology.adapters) shared.push_back(shared_bridges(gpu, adapter));
    if (shared.empty()) break;
    const std::size_t most = *std::ranges::max_element(shared);
    for (std::size_t i = 0; i < shared.size(); ++i) {
      nearest_gpu[i] = std::max(nearest_gpu[i], shared[i]);
      if (shared[i] == most && most > 0) first[i] = first[i] == 0 ? most : std::min(first[i], most);
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == 0) first[i] = nearest_gpu[i];
  }
  return first;
}

}  // namespace

std::string Tag::text(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? "" : found->second;
}

double Tag::number(std::string_view attribute) const {
  const std::string value = text(attribute);
  return number_in<double>(std::string_view(value).substr(0, value.find_first_of(blanks))).value_or(0);
}

std::vector<Tag> tags_of(std::string_view xml) {
  constexpr std::size_t most_tags = 100'000, most_attributes = 64;
  std::vector<Tag> tags;
  Cursor c{xml};
  while (c.after("<") && tags.size() < most_tags) {
    std::string_view inside = c.until(">");
    if (c.rest.empty() || inside.starts_with('?') || inside.starts_with('!')) continue;
    Tag tag;
    tag.closes = inside.starts_with('/');
    if (tag.closes) inside.remove_prefix(1);
    tag.alone = inside.ends_with('/');
    if (tag.alone) inside.remove_suffix(1);
    Cursor a{inside};
    tag.name = std::string(a.until(blanks));
    while (tag.attributes.size() < most_attributes) {
      std::string_view name = a.until("=");
      name.remove_prefix(std::min(name.find_first_not_of(blanks), name.size()));
      if (!a.literal("=\"")) break;
      tag.attributes.emplace(name, a.until("\""));
      if (!a.literal("\"")) break;
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

Topology parse_topology(std::string_view xml) {
  constexpr std::size_t deepest = 64;
  Topology found;
  std::vector<Tag> open;
  int systems = 0, cpus = 0;
  for (Tag& tag : tags_of(xml)) {
    if (tag.closes) {
      if (!open.empty()) open.pop_back();
      continue;
    }
    if (tag.name == "system") ++systems;
    if (tag.name == "cpu") {
      ++cpus;
      found.any_cpu = true;
      found.cpu_without_arch = found.cpu_without_arch || tag.text("arch").empty();
    } else if (tag.name == "gpu") {
      Topology::Device gpu = device_of(tag, open, systems, cpus);
      gpu.name = gpu.path.empty() ? "GPU " + tag.text("dev") : gpu.path.back().address;
      gpu.compute_capability = tag.number("sm");
      found.gpus.push_back(std::move(gpu));
    } else if (tag.name == "nvlink" && !found.gpus.empty()) {
      found.gpus.back().nvlinks += tag.number("count");
    } else if (tag.name == "net") {
      constexpr double mega = 1e6;
      Topology::Device net = device_of(tag, open, systems, cpus);
      net.name = tag.text("name");
      net.bits_per_s = mega * tag.number("speed");
      found.adapters.push_back(std::move(net));
    }
    if (!tag.alone && open.size() < deepest) open.push_back(std::move(tag));
  }
  return found;
}

std::size_t shared_bridges(const Topology::Device& a, const Topology::Device& b) {
  std::size_t count = 0;
  while (count + 1 < a.path.size() && count + 1 < b.path.size() && a.path[count].address == b.path[count].address)
    ++count;
  return a.system == b.system && a.cpu == b.cpu ? count : 0;
}

std::vector<NarrowLink> narrow_links(const Topology& topology) {
  constexpr double rounding = 0.95;
  const std::vector<std::size_t> first = first_used_links(topology);
  std::vector<NarrowLink> narrow;
  for (std::size_t i = 0; i < topology.adapters.size(); ++i) {
    const Topology::Device& adapter = topology.adapters[i];
    for (const Topology::Link& link : std::span(adapter.path).subspan(first[i])) {
      if (link.bits_per_s == 0 || link.bits_per_s >= rounding * adapter.bits_per_s) continue;
      narrow.push_back({&adapter, &link});
      break;
    }
  }
  return narrow;
}

double pcie_bits_per_s(double gigatransfers, double lanes) {
  constexpr double giga = 1e9, old = 5, old_encoding = 0.8, encoding = 128.0 / 130;
  return gigatransfers * giga * lanes * (gigatransfers <= old ? old_encoding : encoding);
}

}  // namespace harness::nccl
