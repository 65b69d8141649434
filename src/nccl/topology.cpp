#include "nccl/topology.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"

namespace harness::nccl {
namespace {

constexpr std::string_view blanks = " \t\r\n";  // NCCL leaves line ends inside elements

// Returns the rate of a PCIe link, with room for future generations; 0 for impossible values: "Unknown", or 0 or 63
// lanes of a device that does not answer.
double rate_of_link(double transfers, double lanes) {
  constexpr double most_transfers = 256, most_lanes = 32;
  const bool possible = transfers > 0 && transfers <= most_transfers && lanes >= 1 && lanes <= most_lanes;
  return possible ? pcie_bits_per_s(transfers, lanes) : 0;
}

Topology::Device device_of(const Tag& tag, const std::vector<Tag>& open, int systems, int cpus) {
  Topology::Device device;
  device.system = systems;
  device.cpu = cpus;
  device.number = static_cast<std::int64_t>(std::min(tag.number("dev").value_or(0), 1e6));
  device.gpu_direct = tag.text("gdr") != "0";
  for (const Tag& above : open) {
    if (above.name != "pci") continue;
    const double transfers = above.number("link_speed").value_or(0), lanes = above.number("link_width").value_or(0);
    device.path.push_back({above.text("busid"), transfers, lanes, rate_of_link(transfers, lanes)});
  }
  return device;
}

// Returns, by adapter, the first link on the path down to it that carries traffic to and from GPUs: the one below the
// bridge where they meet. Counts only GPUs to which no other adapter is nearer.
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

constexpr double rounding = 0.95;

LinkCheck check_of(const Topology::Device& device, std::span<const Topology::Link> links, double port_bits_per_s) {
  LinkCheck check{&device, port_bits_per_s, nullptr, port_bits_per_s > 0 && !links.empty()};
  for (const Topology::Link& link : links) {
    check.is_known = check.is_known && link.bits_per_s > 0;
    const bool narrow = link.bits_per_s > 0 && link.bits_per_s < rounding * port_bits_per_s;
    if (narrow && check.narrow == nullptr) check.narrow = &link;
  }
  return check;
}

LinkCheck check_of_gpu(const Topology& topology, const Topology::Device& gpu) {
  const auto shared = [&](const Topology::Device& adapter) { return shared_bridges(gpu, adapter); };
  const std::size_t most = shared(*std::ranges::max_element(topology.adapters, {}, shared));
  const auto on_its_node = [&](const Topology::Device& adapter) {
    return adapter.system == gpu.system && adapter.cpu == gpu.cpu;
  };
  const bool any_near = std::ranges::any_of(topology.adapters, on_its_node);
  double port = 0;
  for (const Topology::Device& adapter : topology.adapters) {
    if (shared(adapter) == most && (on_its_node(adapter) || !any_near)) port = std::max(port, adapter.bits_per_s);
  }
  const std::span<const Topology::Link> path(gpu.path);
  LinkCheck check =
      check_of(gpu, most > 0 ? path.subspan(most) : path.last(std::min<std::size_t>(1, path.size())), port);
  constexpr double all_lanes = 16;
  const auto is_faster = [&](const Topology::Device& other) {
    return !other.path.empty() && rounding * other.path.back().bits_per_s > check.narrow->bits_per_s;
  };
  check.is_usual =
      check.narrow != nullptr && check.narrow->lanes >= all_lanes && std::ranges::none_of(topology.gpus, is_faster);
  return check;
}

}  // namespace

std::string Tag::text(std::string_view attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? "" : found->second;
}

std::optional<double> Tag::number(std::string_view attribute) const {
  const std::string value = text(attribute);
  const auto number = number_in<double>(std::string_view(value).substr(0, value.find_first_of(blanks)));
  return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
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

bool is_whole(const std::vector<Tag>& tags) {
  std::vector<std::string_view> open;
  for (const Tag& tag : tags) {
    if (tag.closes) {
      if (open.empty() || open.back() != tag.name) return false;
      open.pop_back();
    } else if (!tag.alone) {
      open.push_back(tag.name);
    }
  }
  return open.empty();
}

Topology parse_topology(std::string_view xml) {
  constexpr std::size_t deepest = 64;
  Topology found;
  std::vector<Tag> open;
  int systems = 0, cpus = 0;
  std::vector<Tag> tags = tags_of(xml);
  found.whole = is_whole(tags);
  for (Tag& tag : tags) {
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
      gpu.compute_capability = tag.number("sm").value_or(0);
      gpu.nvlinks = 0;
      found.gpus.push_back(std::move(gpu));
    } else if (tag.name == "nvlink" && !found.gpus.empty()) {
      std::optional<double>& links = found.gpus.back().nvlinks;
      const auto count = tag.number("count");
      links = links && count ? std::optional(*links + *count) : std::nullopt;
    } else if (tag.name == "net") {
      constexpr double mega = 1e6, most = 1e8;  // 100 Tb/s
      Topology::Device net = device_of(tag, open, systems, cpus);
      net.name = tag.text("name");
      const double speed = tag.number("speed").value_or(0);
      net.bits_per_s = speed <= most ? mega * speed : 0;
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

std::vector<LinkCheck> check_links(const Topology& topology) {
  const std::vector<std::size_t> first = first_used_links(topology);
  std::vector<LinkCheck> checks;
  for (std::size_t i = 0; i < topology.adapters.size(); ++i) {
    const Topology::Device& adapter = topology.adapters[i];
    checks.push_back(check_of(adapter, std::span(adapter.path).subspan(first[i]), adapter.bits_per_s));
  }
  if (topology.adapters.empty()) return checks;
  for (const Topology::Device& gpu : topology.gpus) checks.push_back(check_of_gpu(topology, gpu));
  return checks;
}

double pcie_bits_per_s(double gigatransfers, double lanes) {
  constexpr double giga = 1e9, old = 5, old_encoding = 0.8, encoding = 128.0 / 130;
  return gigatransfers * giga * lanes * (gigatransfers <= old ? old_encoding : encoding);
}

}  // namespace harness::nccl
