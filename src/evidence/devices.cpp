#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "evidence/devices.h"
#include "nccl/topology.h"

// `nvidia-smi topo -m`: a tab between columns. Cells: X, NV# (NVLinks), PIX, PXB, PHB, NODE, SYS, from near to far.
// `nvidia-smi topo -p2p r`: OK, or why not: CNS, GNS, TNS, NS, DR, U.

namespace harness::evidence {
namespace {

struct Matrix {
  std::vector<std::string> names;                      // of the columns that are devices, in order
  std::map<std::string, std::vector<std::string>> of;  // by the row's device: its cells, as many as there are names
  std::map<std::string, std::string> adapters;         // "NIC0": "mlx5_0"

  std::string cell(std::size_t row, std::size_t column) const {
    const auto found = of.find(names[row]);
    return found == of.end() ? "" : found->second[column];
  }
  // Pairs of these devices, by what stands in their cell.
  std::map<std::string, std::vector<std::string>> pairs(const std::vector<std::size_t>& devices) const {
    std::map<std::string, std::vector<std::string>> found;
    for (const std::size_t a : devices) {
      for (const std::size_t b : devices)
        if (b > a) found[cell(a, b)].push_back(names[a] + "-" + names[b]);
    }
    return found;
  }
};

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 && name.size() < 8 &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// From near to far; NVLinks are nearest.
int distance(std::string_view cell) {
  static constexpr std::array<std::string_view, 5> levels = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto found = std::ranges::find(levels, cell);
  if (found != levels.end()) return static_cast<int>(found - levels.begin()) + 1;
  return cell.starts_with("NV") ? 0 : 100;
}

// Heads the table of `rocm-smi --showtopo` that says what `nvidia-smi topo -m` does; its cells are XGMI and PCIE.
constexpr std::string_view links_of_amd = "Link Type between two GPUs";

// The parts between tabs; where the tabs were lost, between two blanks or more (" X " is one cell).
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  const bool tabs = contains(line, "\t");
  for (const std::string_view cell : tabs ? split(line, '\t') : words_of(line, 256)) cells.emplace_back(trim(cell));
  const bool heads = !cells.empty() && is_gpu(cells[0]) &&
                     std::ranges::none_of(cells, [](const std::string& cell) { return cell == "X" || cell == "0"; });
  cells.insert(cells.begin(), heads ? 1 : 0, "");
  return cells;
}

Matrix matrix_of(std::string_view text) {
  Matrix out;
  constexpr std::size_t most = 256;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() >= 2 && out.names.empty() && cells[0].empty() && is_gpu(cells[1])) {
      for (std::size_t i = 1; i < cells.size() && out.names.size() < most; ++i) {
        if (cells[i].empty() || cells[i].find(' ') != std::string::npos || cells[i] == "CPU") break;
        out.names.push_back(cells[i]);
      }
    } else if (!out.names.empty() && !cells.empty() && std::ranges::find(out.names, cells[0]) != out.names.end() &&
               cells.size() > out.names.size()) {
      out.of[cells[0]].assign(cells.begin() + 1, cells.begin() + 1 + static_cast<std::ptrdiff_t>(out.names.size()));
    } else if (Cursor c{trim(line)}; c.rest.starts_with("NIC") && out.adapters.size() < most) {
      const std::string name(c.until(":"));
      if (c.literal(": ")) out.adapters[name] = std::string(trim(c.rest));
    }
  }
  return out;
}

// Pairs that cannot reach each other's memory, of `topo -p2p`.
Answer peer_access(const Matrix& matrix, const std::vector<std::size_t>& gpus) {
  Answer out = Answer::of("topology", "nvidia-smi topo -p2p");
  constexpr std::string_view reasons =
      "CNS=the chipset does not support it|GNS=the GPU does not support it|TNS=the topology does not support it|"
      "NS=it is not supported|DR=a registry key disables it|U=unknown";
  for (const auto& [cell, names] : matrix.pairs(gpus)) {
    if (cell == "OK" || cell.empty()) continue;
    out.problem(fmt::format("{} cannot reach each other's memory ({})", join_first(names, 4),
                            mapped(reasons, cell).value_or(cell)),
                "NCCL sends between them through host memory (SHM)");
  }
  if (out.headline.empty()) out.headline = fmt::format("{} GPUs, all reach each other's memory", matrix.names.size());
  out.fact("gpus", std::ssize(matrix.names));
  out.next.emplace_back("./harness doctor --stages static     # on this node: links, GPUDirect, NUMA");
  return out;
}

}  // namespace

bool is_topology_matrix(std::string_view text) {
  if (!contains(text, "GPU0")) return false;
  if (contains(text, links_of_amd)) return true;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = words_of(line, 2);
    if (words.size() == 2 && words[0] == "GPU0" && words[1] == "X") return true;
  }
  return false;
}

Answer topology_matrix(std::string_view text) {
  const bool amd = contains(text, links_of_amd);
  const Matrix matrix = matrix_of(amd ? text.substr(text.find(links_of_amd)) : text);
  std::vector<std::size_t> gpus, adapters;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) (is_gpu(matrix.names[i]) ? gpus : adapters).push_back(i);
  if (gpus.empty() || matrix.of.empty()) fail("it is no matrix of `nvidia-smi topo -m`");
  const std::vector<std::string>& first = matrix.of.begin()->second;
  if (std::ranges::any_of(first, [](const std::string& c) { return c == "OK" || c == "NS" || c.ends_with("NS"); }))
    return peer_access(matrix, gpus);
  Answer out = Answer::of("topology", amd ? "rocm-smi topo" : "nvidia-smi topo");
  const auto adapter_name = [&](std::size_t column) {
    const auto found = matrix.adapters.find(matrix.names[column]);
    return found == matrix.adapters.end() ? matrix.names[column] : found->second;
  };

  // NVLinks of each pair, and which number is usual. Meshes and bridges give each GPU several kinds, all alike: a fault
  // makes GPUs differ.
  const std::map<std::string, std::vector<std::string>> pairs = matrix.pairs(gpus);
  std::set<std::vector<std::string>> nvlinks;
  for (const std::size_t a : gpus) {
    std::vector<std::string> own;
    for (const std::size_t b : gpus) {
      const std::string kind = matrix.cell(a, b);
      if (kind.starts_with("NV") || kind == "XGMI") own.push_back(kind);
    }
    std::ranges::sort(own);
    nvlinks.insert(own);
  }
  const auto links = [&](const std::string& kind) {
    if (amd) return kind;
    return kind.starts_with("NV") ? fmt::format("{} NVLinks", kind.substr(2)) : "no NVLink but " + kind;
  };
  std::string usual;
  if (!pairs.empty()) {
    usual = std::ranges::max_element(pairs, {}, [](const auto& row) { return row.second.size(); })->first;
    std::vector<std::string> kinds;
    for (const auto& [kind, names] : pairs)
      kinds.push_back(
          fmt::format("{} {}", links(kind), pairs.size() == 1 ? "each" : fmt::format("in {}", names.size())));
    out.tell("GPU pairs", join(kinds, "; "));
  }
  for (const auto& [kind, names] : pairs) {
    if (kind == usual || nvlinks.size() == 1) continue;
    out.problem(
        fmt::format("{} {} {} where {} other pairs have {}", join_first(names, 4), names.size() == 1 ? "has" : "have",
                    links(kind), pairs.size() == 2 ? "all" : "most", links(usual)),
        amd ? "rocm-smi --showxgmierr" : "nvidia-smi nvlink -s");
  }

  // The nearest adapter of each GPU.
  std::map<std::string, std::vector<std::string>> nearest_levels;
  std::map<std::string, std::size_t> nearest_adapter;
  for (const std::size_t gpu : gpus) {
    if (adapters.empty()) break;
    const std::size_t best = *std::ranges::min_element(
        adapters, {}, [&](std::size_t adapter) { return distance(matrix.cell(gpu, adapter)); });
    nearest_levels[matrix.cell(gpu, best)].push_back(matrix.names[gpu]);
    nearest_adapter[matrix.names[gpu]] = best;
  }
  std::string best_level;
  for (const auto& [level, names] : nearest_levels)
    if (best_level.empty() || distance(level) < distance(best_level)) best_level = level;
  for (const auto& [level, names] : nearest_levels) {
    out.tell("adapters", fmt::format("{} at {}: {}", level.empty() ? "?" : level, plural(std::ssize(names), "GPU"),
                                     join_first(names, 8)));
    if (distance(level) < distance("NODE") || level == best_level) continue;
    for (const std::string& name : names) {
      out.problem(fmt::format("{} reaches its nearest adapter ({}) at {} where others have {}", name,
                              adapter_name(nearest_adapter[name]), level, best_level),
                  "no GPUDirect RDMA by default");
    }
  }
  if (!best_level.empty() && distance(best_level) >= distance("NODE"))
    out.problem("no GPU has an adapter below its PCIe switch",
                "no GPUDirect RDMA by default, but for Grace with NCCL 2.27 and later");

  out.fact("gpus", std::ssize(gpus));
  std::vector<std::string> named;
  for (const std::size_t adapter : adapters) {
    const std::string& column = matrix.names[adapter];
    named.push_back(matrix.adapters.contains(column) ? column + " " + adapter_name(adapter) : column);
  }
  const std::string kinds = out.evidence.empty() ? "" : ": " + out.evidence.front().second;
  if (out.headline.empty())
    out.headline = amd ? fmt::format("{} GPUs, all alike{}", gpus.size(), kinds)
                       : fmt::format("{} GPUs and {} adapters, all alike", gpus.size(), adapters.size());
  if (amd) return out;
  out.fact("nics", named.empty() ? "none" : join(named, ", "));
  out.next.emplace_back("./harness doctor --stages static     # on this node: links, GPUDirect, NUMA");
  return out;
}

// NCCL's own XML (src/graph/topo.cc, search.cc), by nccl/topology.h.

namespace {

constexpr const char* cut_file = "it is cut: not every element is closed; write it again with {}";

std::string algorithm_of(std::string_view id) {
  return mapped("0=ring|1=tree|2=collnet|3=nvls|4=collnet direct", id).value_or("unknown");
}

}  // namespace

Answer nccl_graphs(std::string_view text) {
  Answer out = Answer::of("graph", "nccl graph");
  std::vector<std::string> parts, adapters;
  std::string first;
  bool in_first = false, any_unknown = false;
  const std::vector<nccl::Tag> tags = nccl::tags_of(text);
  for (const nccl::Tag& tag : tags) {
    if (tag.name == "graph" && !tag.closes) {
      const std::optional<double> channels = tag.number("nchannels"), speed = tag.number("speedintra");
      std::string part = fmt::format("{} {}: ", tag.text("id"), algorithm_of(tag.text("id")));
      if (!channels || (*channels > 0 && !speed)) {
        part += "unknown";
        any_unknown = true;
      } else if (*channels == 0) {
        part += "none";
      } else {
        const std::string between = tag.text("typeintra");
        part += fmt::format("{:g} channels x {:g} GB/s, {} inside, adapters at {}", *channels, *speed,
                            between == "NVL" ? "NVLink" : between, tag.text("typeinter"));
        if (first.empty()) first = fmt::format("{:g} channels of {:g} GB/s", *channels, *speed);
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
  if (!nccl::is_whole(tags)) fail(cut_file, "NCCL_GRAPH_DUMP_FILE");
  out.fact("graphs", join(parts, "; "));
  if (!adapters.empty()) out.fact("adapters", and_list(adapters) + (adapters.size() > 1 ? ", one per channel" : ""));
  for (const std::string& part : parts) out.tell("graph", part);
  if (!adapters.empty()) out.tell("adapters", and_list(adapters));
  out.headline = "rings: " + first;
  if (first.empty())
    out.headline =
        any_unknown ? "the file does not say what NCCL found" : "NCCL found no algorithm that is possible here";
  out.notes.emplace_back(
      "channels x GB/s is what NCCL plans with inside a node; none: that algorithm is impossible here");
  return out;
}

Answer nccl_topology(std::string_view text) {
  const nccl::Topology topology = nccl::parse_topology(text);
  const std::vector<nccl::Topology::Device>&gpus = topology.gpus, &adapters = topology.adapters;
  if (!topology.any_cpu && gpus.empty() && adapters.empty()) fail("it holds no topology of NCCL");

  if (!topology.whole) fail(cut_file, "NCCL_TOPO_DUMP_FILE");
  Answer out = Answer::of("topology", "nccl topology");
  constexpr double giga = 1e9, bits = 8;
  std::map<double, std::vector<std::string>> links;  // GPUs by their number
  for (const auto& gpu : gpus) {
    if (gpu.nvlinks) links[*gpu.nvlinks].push_back(fmt::format("GPU {}", gpu.number));
  }
  std::string described = std::to_string(gpus.size());
  if (!gpus.empty()) {
    const double capability = gpus.front().compute_capability / 10;
    const auto nvlinks = gpus.front().nvlinks;
    described += fmt::format(
        " (compute capability {}, {} NVLinks{})", capability > 0 ? fmt::format("{:.1f}", capability) : "unknown",
        nvlinks ? fmt::format("{:g}", *nvlinks) : "an unknown number of", links.size() > 1 ? " on the first" : "");
  }
  if (links.size() > 1) {
    std::vector<std::string> groups;
    for (const auto& [n, names] : links) groups.push_back(fmt::format("{:g} on {}", n, some_of(names)));
    out.problem("GPUs differ in their number of NVLinks: " + join(groups, ", "), "nvidia-smi nvlink -s");
  }
  std::vector<std::string> named;
  for (const auto& adapter : adapters) {
    std::string name = adapter.name + (adapter.bits_per_s > 0 ? fmt::format(" {:g} Gb/s", adapter.bits_per_s / giga)
                                                              : " of an unknown rate");
    const auto near =
        std::ranges::find_if(gpus, [&](const auto& gpu) { return nccl::shared_bridges(gpu, adapter) > 0; });
    if (near != gpus.end()) name += fmt::format(", same switch as GPU {}", near->number);
    named.push_back(name);
    out.tell("adapter", name);
  }
  const auto is_gpu = [&](const nccl::Topology::Device& device) {
    return std::ranges::any_of(gpus, [&](const auto& gpu) { return &gpu == &device; });
  };
  const auto name_of = [&](const nccl::Topology::Device& device) {
    return is_gpu(device) && !device.path.empty() ? fmt::format("GPU {} ({})", device.number, device.name)
                                                  : device.name;
  };
  const std::vector<nccl::LinkCheck> checks = nccl::check_links(topology);
  std::vector<std::string> unknown, usual, indirect;
  std::map<std::string, std::vector<std::string>> narrow;  // devices, by what they have
  for (const nccl::LinkCheck& check : checks) {
    const std::string name = name_of(*check.device);
    if (check.is_usual) {
      usual.push_back(name);
    } else if (check.narrow != nullptr) {
      narrow[fmt::format("{:g} lanes of PCIe at {:g} GT/s (about {:.1f} GB/s) for a port of {:g} GB/s",
                         check.narrow->lanes, check.narrow->gigatransfers, check.narrow->bits_per_s / bits / giga,
                         check.port_bits_per_s / bits / giga)]
          .push_back(name);
    } else if (!check.is_known) {
      unknown.push_back(name);
    }
  }
  for (const auto& [have, names] : narrow)
    out.problem(fmt::format("{} {} {}", some_of(names), names.size() == 1 ? "has" : "have", have),
                "reseat the card, try another slot");
  if (!unknown.empty())
    out.notes.push_back(
        fmt::format("not judged, for the file has no rate of a PCIe link or of a port: {}; on the node: "
                    "lspci -vv (LnkSta); virtual machines hide it",
                    some_of(unknown)));
  if (!usual.empty())
    out.notes.push_back(
        fmt::format("a port is faster than the 16 lanes of these GPUs, so one GPU alone cannot fill it: "
                    "{}",
                    some_of(usual)));
  for (const auto* devices : {&adapters, &gpus}) {
    for (const auto& device : *devices)
      if (!device.gpu_direct && !adapters.empty()) indirect.push_back(name_of(device));
  }
  if (!indirect.empty()) out.problem("no GPUDirect RDMA for " + some_of(indirect), "nvidia-peermem or DMA-BUF");
  if (topology.cpu_without_arch) out.problem("a <cpu> has no arch", "NCCL cannot read such a file: write it again");
  out.fact("gpus", described);
  out.fact("nics", named.empty() ? "none" : join(named, "; "));
  out.evidence.insert(out.evidence.begin(), {"GPUs", described});
  if (out.headline.empty()) {
    std::string links_text = usual.empty() ? "no PCIe link is narrower than a port" : "their PCIe links are all alike";
    if (!unknown.empty())
      links_text = fmt::format(
          "no PCIe link that the file describes is narrower than a port; it does not describe those "
          "of {}",
          some_of(unknown));
    if (unknown.size() == checks.size())
      links_text = "the file does not say whether a PCIe link is narrower than a port";
    if (adapters.empty()) links_text = "no port to compare their PCIe links with";
    out.headline = fmt::format("{} and {}: {}", plural(std::ssize(gpus), "GPU"),
                               plural(std::ssize(adapters), "adapter"), links_text);
  }
  out.next.emplace_back("./harness doctor --stages static     # on this node: links, GPUDirect, NUMA");
  return out;
}

}  // namespace harness::evidence
