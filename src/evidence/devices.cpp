#include "evidence/devices.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "nccl/topology.h"

// `nvidia-smi topo -m`: a tab between columns. Cells: X, NV# (NVLinks), PIX, PXB, PHB, NODE, SYS, from near to far.

namespace harness::evidence {
namespace {

struct Matrix {
  std::vector<std::string> names;                                 // device columns, in order
  std::map<std::pair<std::string, std::string>, std::string> of;  // by row and column
  std::map<std::string, std::string> adapters;                    // "NIC0": "mlx5_0"
  bool several = false;  // another matrix follows: of another node, or of `topo -p2p r`
  bool cut = false;      // GPUs have no row, and are left out

  std::string cell(std::size_t row, std::size_t column) const {
    return value_at(of, std::pair(names[row], names[column]), "");
  }
  std::string adapter(std::size_t column) const { return value_at(adapters, names[column], names[column]); }
};

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 && name.size() < 8 &&
         name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// Ranks connections from near to far; NVLinks are nearest.
int distance(std::string_view cell) {
  static constexpr std::array<std::string_view, 5> levels = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto found = std::ranges::find(levels, cell);
  if (found != levels.end()) return static_cast<int>(found - levels.begin()) + 1;
  return cell.starts_with("NV") ? 0 : 100;
}

// Splits at tabs, or at blanks if the tabs were lost (" X " is one cell).
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string_view cell : contains(line, "\t") ? split(line, '\t') : words_of(line, 256))
    cells.emplace_back(trim(cell));
  const auto is_column = [](std::string_view name) {  // older drivers name adapters mlx5_0
    return is_gpu(name) || begins_with(name, "CPU|NIC|mlx");
  };
  const bool heads = cells.size() > 1 && is_gpu(cells[0]) && is_column(cells[1]);
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
      if (out.of.contains({cells[0], out.names[0]})) out.several = true;
      if (out.several) continue;
      for (std::size_t i = 0; i < out.names.size(); ++i) out.of[{cells[0], out.names[i]}] = cells[i + 1];
    } else if (Cursor c{trim(line)}; c.rest.starts_with("NIC") && out.adapters.size() < most) {
      const std::string name(c.until(":"));
      if (c.literal(": ")) out.adapters[name] = std::string(trim(c.rest));
    }
  }
  const std::string first = out.names.empty() ? "" : out.names.front();
  out.cut = std::erase_if(out.names, [&](const auto& name) {
              return is_gpu(name) && !out.of.contains({name, first});
            }) > 0;
  return out;
}

constexpr const char* cut_file = "it is cut: not every element is closed; write it again with {}";
constexpr const char* look_closer = "./harness doctor --stages static     # on this node: links, GPUDirect, NUMA";

// Judges the NVLinks of each GPU pair. In meshes and bridges every GPU has the same mix of link counts; a fault makes
// GPUs differ. A GPU that is left over, and half of the GPUs, may have no NVLinks because nobody gave them a bridge.
void judge_pairs(const Matrix& matrix, const std::vector<std::size_t>& gpus, Answer& out) {
  std::map<std::string, std::vector<std::string>> pairs;  // by cell content
  std::set<std::vector<std::string>> nvlinks;
  std::size_t joined = 0, alone = 0;  // pairs with NVLinks; GPUs without
  for (const std::size_t a : gpus) {
    std::vector<std::string> own;
    for (const std::size_t b : gpus) {
      const std::string kind = matrix.cell(a, b);
      if (kind.starts_with("NV")) own.push_back(kind);
      if (b > a) pairs[kind].push_back(matrix.names[a] + "-" + matrix.names[b]);
      if (b > a && kind.starts_with("NV")) ++joined;
    }
    std::ranges::sort(own);
    nvlinks.insert(own);
    alone += own.empty() ? 1 : 0;
  }
  if (pairs.empty()) return;
  const auto links = [](const std::string& kind) {
    return kind.starts_with("NV") ? fmt::format("{} NVLinks", kind.substr(2)) : "no NVLink but " + kind;
  };
  const std::string usual =
      std::ranges::max_element(pairs, {}, [](const auto& row) { return row.second.size(); })->first;
  const std::size_t all = gpus.size() * (gpus.size() - 1) / 2;
  const bool bridged = nvlinks.size() == 2 && 2 * joined < all && (alone == 1 || 2 * alone >= gpus.size());
  std::vector<std::string> kinds;
  for (const auto& [kind, names] : pairs) {
    kinds.push_back(fmt::format("{} in {}", links(kind), plural(std::ssize(names), "pair")));
    if (bridged && kind.starts_with("NV"))
      say(out.notes, "{}: {} where other pairs have none: so built, or they have lost theirs (nvidia-smi nvlink -s)",
          join_first(names, 4), links(kind));
    if (kind != usual && nvlinks.size() > 1 && !bridged)
      out.problem(fmt::format("{}: {} where other pairs have {}", join_first(names, 4), links(kind), links(usual)),
                  "nvidia-smi nvlink -s");
  }
  out.tell("GPU pairs", join(kinds, "; ") + (nvlinks.rbegin()->empty() ? " (`topo -mp` leaves NVLinks out)" : ""));
}

void judge_adapters(const Matrix& matrix, const std::vector<std::size_t>& gpus,
                    const std::vector<std::size_t>& adapters, Answer& out) {
  if (adapters.empty()) return;
  std::map<int, std::pair<std::string, std::vector<std::size_t>>> nearest;  // by distance: its name and the GPUs
  const auto nearest_to = [&](std::size_t gpu) {
    return *std::ranges::min_element(adapters, {}, [&](std::size_t a) { return distance(matrix.cell(gpu, a)); });
  };
  for (const std::size_t gpu : gpus) {
    const std::string level = matrix.cell(gpu, nearest_to(gpu));
    auto& row = nearest[distance(level)];
    row.first = level.empty() ? "?" : level;
    row.second.push_back(gpu);
  }
  const std::string& best = nearest.begin()->second.first;
  for (const auto& [far, row] : nearest) {
    const auto& [level, own] = row;
    out.tell("adapters", fmt::format("{} at {}", plural(std::ssize(own), "GPU"), level));
    if (far < distance("NODE") || level == best) continue;
    for (const std::size_t gpu : own)
      out.problem(fmt::format("{} reaches its nearest adapter ({}) at {} where others have {}", matrix.names[gpu],
                              matrix.adapter(nearest_to(gpu)), level, best),
                  "no GPUDirect RDMA by default");
  }
  if (distance(best) >= distance("NODE"))
    out.problem("no GPU has an adapter below its PCIe switch",
                "no GPUDirect RDMA by default, but for Grace with NCCL 2.27 and later");
}

std::string name_of(const nccl::Topology& topology, const nccl::Topology::Device& device) {
  const bool gpu = std::ranges::any_of(topology.gpus, [&](const auto& one) { return &one == &device; });
  return gpu && !device.path.empty() ? fmt::format("GPU {} ({})", device.number, device.name) : device.name;
}

// Returns the headline's words on the links if nothing is wrong.
std::string judge_links(const nccl::Topology& topology, Answer& out) {
  constexpr double giga = 1e9, bits = 8;
  const std::vector<nccl::LinkCheck> checks = nccl::check_links(topology);
  std::vector<std::string> unknown, usual;
  std::map<std::string, std::vector<std::string>> narrow;  // devices by link description
  for (const nccl::LinkCheck& check : checks) {
    const std::string name = name_of(topology, *check.device);
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
    out.notes.push_back("not judged, for the file has no rate of a PCIe link or of a port: " + some_of(unknown) +
                        "; on the node: lspci -vv (LnkSta); virtual machines hide it");
  if (!usual.empty())
    out.notes.push_back("a port is faster than the 16 lanes of these GPUs, so one GPU alone cannot fill it: " +
                        some_of(usual));
  if (!unknown.empty() || checks.empty()) return "the file does not say whether a PCIe link is narrower than a port";
  return "no PCIe link is narrower than a port, or all are alike";
}

}  // namespace

bool is_topology_matrix(std::string_view text) {
  const auto is_row = [](std::string_view line) {
    const std::vector<std::string_view> words = words_of(line, 2);
    return words.size() == 2 && words[0] == "GPU0" && words[1] == "X";
  };
  return contains(text, "GPU0") && std::ranges::any_of(split(text, '\n'), is_row) && !matrix_of(text).of.empty();
}

Answer topology_matrix(std::string_view text) {
  const Matrix matrix = matrix_of(text);
  std::vector<std::size_t> gpus, adapters;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) (is_gpu(matrix.names[i]) ? gpus : adapters).push_back(i);
  if (gpus.empty() || matrix.of.empty()) fail("it is no matrix of `nvidia-smi topo -m`");
  Answer out = Answer::of("topology", "nvidia-smi topo");
  judge_pairs(matrix, gpus, out);
  judge_adapters(matrix, gpus, adapters, out);
  out.fact("gpus", std::ssize(gpus));
  std::vector<std::string> named;
  for (const std::size_t adapter : adapters) {
    const std::string& column = matrix.names[adapter];
    named.push_back(matrix.adapters.contains(column) ? column + " " + matrix.adapter(adapter) : column);
  }
  out.fact("nics", named.empty() ? "none" : join(named, ", "));
  if (out.headline.empty())
    out.headline =
        fmt::format("{} GPUs and {} adapters{}", gpus.size(), adapters.size(), out.notes.empty() ? ", all alike" : "");
  if (matrix.cut) out.notes.emplace_back("the matrix is cut: GPUs whose row is missing are left out");
  if (matrix.several) out.notes.emplace_back("the text holds more than one matrix: the first counts");
  out.next.emplace_back(look_closer);
  return out;
}

// Reads NCCL's XML (src/graph/topo.cc, search.cc) through nccl/topology.h.
Answer nccl_graphs(std::string_view text) {
  Answer out = Answer::of("graph", "nccl graph");
  std::vector<std::string> parts, adapters;
  std::string first;
  bool in_first = false, any_unknown = false;
  const std::vector<nccl::Tag> tags = nccl::tags_of(text);
  for (const nccl::Tag& tag : tags) {
    if (tag.name == "graph" && !tag.closes) {
      const std::optional<double> channels = tag.number("nchannels"), speed = tag.number("speedintra");
      std::string part =
          fmt::format("{} {}: ", tag.text("id"),
                      mapped("0=ring|1=tree|2=collnet|3=nvls|4=collnet direct", tag.text("id")).value_or("unknown"));
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
      if (adapters.size() < 64) add_once(adapters, tag.text("dev"));
    } else if (tag.name == "graph") {
      in_first = false;
    }
  }
  if (parts.empty()) fail("it holds no graph of NCCL");
  if (!nccl::is_whole(tags)) fail(cut_file, "NCCL_GRAPH_DUMP_FILE");
  out.fact("graphs", join(parts, "; "));
  for (const std::string& part : parts) out.tell("graph", part);
  out.fact_and_tell("adapters", "adapters", and_list(adapters) + (adapters.size() > 1 ? ", one per channel" : ""));
  const char* none = any_unknown ? "the file does not say what NCCL found" : "no algorithm is possible here";
  out.headline = first.empty() ? none : "rings: " + first;
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
  std::map<double, std::vector<std::string>> links;  // GPUs by number of NVLinks
  for (const auto& gpu : gpus) {
    if (gpu.nvlinks) links[*gpu.nvlinks].push_back(fmt::format("GPU {}", gpu.number));
  }
  std::string described = std::to_string(gpus.size());
  const auto known = [](double value, int digits) {
    return value > 0 ? fmt::format("{:.{}f}", value, digits) : std::string("unknown");
  };
  if (!gpus.empty())
    described +=
        fmt::format(" (compute capability {}, {} NVLinks)", known(gpus.front().compute_capability / 10, 1),
                    gpus.front().nvlinks ? fmt::format("{:g}", *gpus.front().nvlinks) : "an unknown number of");
  std::vector<std::string> groups, named, indirect;
  for (const auto& [n, names] : links) groups.push_back(fmt::format("{:g} on {}", n, some_of(names)));
  if (links.size() > 1)
    out.problem("GPUs differ in their number of NVLinks: " + join(groups, ", "), "nvidia-smi nvlink -s");
  out.tell("GPUs", described);
  for (const auto& adapter : adapters) {
    named.push_back(fmt::format("{} {} Gb/s", adapter.name, known(adapter.bits_per_s / 1e9, 0)));
    const auto near =
        std::ranges::find_if(gpus, [&](const auto& gpu) { return nccl::shared_bridges(gpu, adapter) > 0; });
    if (near != gpus.end()) named.back() += fmt::format(", same switch as GPU {}", near->number);
    out.tell("adapter", named.back());
  }
  const std::string said = judge_links(topology, out);
  for (const auto* devices : {&adapters, &gpus}) {
    for (const auto& device : *devices)
      if (!device.gpu_direct && !adapters.empty()) indirect.push_back(name_of(topology, device));
  }
  if (!indirect.empty()) out.problem("no GPUDirect RDMA for " + some_of(indirect), "nvidia-peermem or DMA-BUF");
  if (topology.cpu_without_arch) out.problem("a <cpu> has no arch", "NCCL cannot read such a file: write it again");
  out.fact("gpus", described);
  out.fact("nics", named.empty() ? "none" : join(named, "; "));
  if (out.headline.empty())
    out.headline =
        fmt::format("{} and {}: {}", plural(std::ssize(gpus), "GPU"), plural(std::ssize(adapters), "adapter"), said);
  out.next.emplace_back(look_closer);
  return out;
}

}  // namespace harness::evidence
