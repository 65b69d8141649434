#include "doctor/nccl_stage.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "machine/tree.h"

namespace harness::doctor {
namespace {

constexpr std::size_t most_elements = 8192, most_open = 64;

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  bool ends_itself = false;  // <nvlink … />
};

std::string attribute(const Element& element, const std::string& name) {
  const auto at = element.attributes.find(name);
  return at == element.attributes.end() ? "" : at->second;
}

double number_of(const Element& element, const std::string& name) {
  const std::string text = attribute(element, name);
  std::string_view rest = text;
  return machine::number(machine::take_word(rest)).value_or(0);
}

constexpr std::string_view blanks = " \t\r\n";  // NCCL leaves ends of lines inside of elements

// Reads the text between '<' and '>'.
Element element_in(std::string_view text) {
  Element element;
  element.ends_itself = text.ends_with('/');
  if (element.ends_itself) text.remove_suffix(1);
  element.name = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(element.name.size());
  while (true) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) return element;
    const std::size_t end = text.find('"', equals + 2);
    if (end == std::string_view::npos) return element;
    std::string_view name = text.substr(0, equals);
    name.remove_prefix(std::min(name.find_first_not_of(blanks), name.size()));
    element.attributes.emplace(name, text.substr(equals + 2, end - equals - 2));
    text.remove_prefix(end + 1);
  }
}

class TopologyReader {
 public:
  void take(const Element& element) {
    if (element.name.starts_with('/')) {
      if (!open_.empty()) open_.pop_back();
      return;
    }
    if (element.name.starts_with('?') || element.name.starts_with('!')) return;
    if (element.name == "system") ++system_;
    if (element.name == "cpu") ++cpu_;
    if (element.name == "gpu") {
      NcclTopology::Device gpu = device(element);
      gpu.name = gpu.path.empty() ? "GPU " + attribute(element, "dev") : gpu.path.back().address;
      found_.gpus.push_back(std::move(gpu));
    } else if (element.name == "net") {
      constexpr double mega = 1e6;
      NcclTopology::Device net = device(element);
      net.name = attribute(element, "name");
      net.bits_per_s = mega * number_of(element, "speed");
      found_.adapters.push_back(std::move(net));
    }
    if (!element.ends_itself && open_.size() < most_open) open_.push_back(element);
  }
  NcclTopology finish() { return std::move(found_); }

 private:
  NcclTopology::Device device(const Element& element) const {
    NcclTopology::Device found;
    found.gpu_direct = attribute(element, "gdr") == "1";
    found.system = system_;
    found.cpu = cpu_;
    for (const Element& above : open_) {
      if (above.name != "pci") continue;
      found.path.push_back(
          {attribute(above, "busid"), pcie_bits_per_s(number_of(above, "link_speed"), number_of(above, "link_width"))});
    }
    return found;
  }

  NcclTopology found_;
  std::vector<Element> open_;
  int system_ = 0, cpu_ = 0;
};

using Device = NcclTopology::Device;

// How many bridges lead to both.
std::size_t shared_bridges(const Device& a, const Device& b) {
  std::size_t count = 0;
  while (count + 1 < a.path.size() && count + 1 < b.path.size() && a.path[count].address == b.path[count].address)
    ++count;
  return a.system == b.system && a.cpu == b.cpu ? count : 0;
}

// By adapter, the first link on the way down to it that traffic between it and GPUs passes: the one below the bridge at
// which they meet. Of the GPUs those count to which no other adapter is nearer. Where no GPU is below a switch with an
// adapter, all traffic comes from the processor.
std::vector<std::size_t> first_used_links(const NcclTopology& topology) {
  std::vector<std::size_t> nearest_gpu(topology.adapters.size(), 0), first(topology.adapters.size(), 0);
  for (const Device& gpu : topology.gpus) {
    std::vector<std::size_t> shared;
    for (const Device& adapter : topology.adapters) shared.push_back(shared_bridges(gpu, adapter));
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

NcclTopology parse_topology(std::string_view text) {
  TopologyReader reader;
  for (std::size_t i = 0; i < most_elements; ++i) {
    const std::size_t begin = text.find('<');
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) break;
    reader.take(element_in(text.substr(begin + 1, end - begin - 1)));
    text.remove_prefix(end + 1);
  }
  return reader.finish();
}

About topology_check() {
  return {"nccl.topology", "where does NCCL place GPUs and adapters, and what do their links carry",
          "NCCL_TOPO_DUMP_FILE of the first rank, for its node", Verdict::warn, "docs/doctor.md"};
}

void judge_topology(const NcclTopology& topology, Findings& out) {
  if (topology.gpus.empty()) return out.unknown("NCCL's picture of the node", "it wrote none");
  if (topology.adapters.empty()) return out.skip("NCCL has no adapter in its picture of the node");
  std::vector<std::string> far, without_direct;
  for (const Device& gpu : topology.gpus) {
    const bool near =
        std::ranges::any_of(topology.adapters, [&](const Device& adapter) { return shared_bridges(gpu, adapter) > 0; });
    if (!near) far.push_back(gpu.name);
    if (!gpu.gpu_direct) without_direct.push_back(gpu.name);
  }
  constexpr std::size_t shown = 3;
  if (!far.empty() && far.size() < topology.gpus.size()) {
    out.warn(fmt::format("NCCL finds an adapter below a switch with {} of {} GPUs, not with {}",
                         topology.gpus.size() - far.size(), topology.gpus.size(), join_first(far, shown)),
             "look at topo.nearest; in a virtual machine give NCCL its file (NCCL_TOPO_FILE), and look for ports that "
             "are down");
  }
  if (far.size() == topology.gpus.size()) {
    out.info("NCCL finds no adapter below a switch with any GPU",
             "where the machine has such switches and hides them, as virtual machines do, give NCCL its file "
             "(NCCL_TOPO_FILE)");
  }
  if (!without_direct.empty() && without_direct.size() < topology.gpus.size()) {
    out.warn("NCCL takes these GPUs to have no GPUDirect RDMA: " + join_first(without_direct, shown),
             "look at gdr.module and gdr.dmabuf of this node");
  }
  constexpr double giga = 1e9, rounding = 0.95;
  std::vector<std::string> narrow;
  const std::vector<std::size_t> first = first_used_links(topology);
  for (std::size_t i = 0; i < topology.adapters.size(); ++i) {
    const Device& adapter = topology.adapters[i];
    for (const NcclTopology::Link& link : std::span(adapter.path).subspan(first[i])) {
      if (link.bits_per_s == 0 || link.bits_per_s >= rounding * adapter.bits_per_s) continue;
      narrow.push_back(fmt::format("{} ({:.0f} Gb/s) by {} ({:.0f})", adapter.name, adapter.bits_per_s / giga,
                                   link.address, link.bits_per_s / giga));
      break;
    }
  }
  if (!narrow.empty()) {
    out.warn("PCIe links carry less than the adapters' ports, as NCCL sees them: " + join_first(narrow, shown),
             "look at pcie.width, pcie.speed and ib.pcie; at the slot, and the riser that it is on");
  }
  if (out.empty())
    out.pass(fmt::format("{} and {}", plural(std::ssize(topology.gpus), "GPU"),
                         plural(std::ssize(topology.adapters), "adapter")));
}

}  // namespace harness::doctor
