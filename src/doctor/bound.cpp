#include "doctor/bound.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/check.h"
#include "sim/collective_time.h"

namespace harness::doctor {
namespace {

void take_gpu(const config::Hardware& hardware, Fabric& fabric) {
  fabric.links.rank_bytes_per_s = hardware.nvlink_bytes_per_s;
  fabric.links.switches_reduce_nodes = hardware.nvlink_bytes_per_s > 0 && hardware.switches_may_reduce();
  fabric.memory_bytes_per_s = hardware.memory_bytes_per_s;
  fabric.cache_bytes = hardware.l2_bytes;
  fabric.hardware = hardware;
  std::string source = fmt::format("GPU: {}", hardware.name);
  if (hardware.nvlink_bytes_per_s > 0)
    source += fmt::format(", NVLink {:.4g} GB/s in one direction", hardware.nvlink_bytes_per_s / 1e9);
  if (hardware.memory_bytes_per_s > 0) source += fmt::format(", memory {:.4g} GB/s", hardware.memory_bytes_per_s / 1e9);
  fabric.sources.push_back(source + fmt::format(" ({}).", hardware.source));
}

// The fastest kind of adapters together: slower ones are for storage.
double network_of(const Node& node) {
  double fastest = 0;
  std::size_t ports = 0;
  for (const Port& port : ports_of(node.facts)) {
    if (!is_active(node.facts, port)) continue;
    const double gbit_per_s = node.facts.number(port.key + "rate").value_or(0);
    if (gbit_per_s > fastest) ports = 0;
    fastest = std::max(fastest, gbit_per_s);
    if (gbit_per_s == fastest) ++ports;
  }
  return static_cast<double>(ports) * fastest * 1e9 / 8;
}

std::vector<int> node_of_ranks(const Fabric& fabric) {
  std::vector<int> node_of(static_cast<std::size_t>(fabric.ranks));
  for (int rank = 0; rank < fabric.ranks; ++rank)
    node_of[static_cast<std::size_t>(rank)] = rank / fabric.ranks_per_node;
  return node_of;
}

// As `plan --backend sim` predicts one all-reduce of these ranks.
double predicted_seconds(double bytes, const Fabric& fabric, const std::vector<int>& node_of, const char* nccl_algo) {
  if (fabric.ranks < 2 || !fabric.hardware) return 0;
  const int most = std::min(fabric.ranks, fabric.ranks_per_node);
  if (most > 1 && fabric.links.rank_bytes_per_s == 0) return 0;
  config::Fabric stated;
  if (fabric.hardware->node_bytes_per_s != fabric.links.node_bytes_per_s)
    stated.node_bytes_per_s = fabric.links.node_bytes_per_s;
  const sim::Network network = sim::network_of(*fabric.hardware, stated, node_of);
  const config::Calibration calibration = config::calibration_named("harness");
  config::Settings settings;
  if (nccl_algo != nullptr) settings.nccl["nccl_algo"] = nccl_algo;
  const sim::Spread spread{{fabric.ranks, fabric.nodes(), most}};
  return sim::CollectiveTime(program::Collective::all_reduce, spread, network, calibration, settings).seconds(bytes);
}

}  // namespace

Fabric fabric_of(const std::vector<Node>& nodes, int ranks) {
  Fabric fabric;
  std::set<std::string> models;
  int gpus = 0, job_ranks = 0, most_ranks = 0;
  double network = std::numeric_limits<double>::infinity();
  for (const Node& node : nodes) {
    for (const std::string& gpu : gpus_of(node.facts)) models.insert(gpu_model(node.facts, gpu));
    const auto here = static_cast<int>(gpus_of(node.facts).size()), started = static_cast<int>(node.ranks.size());
    fabric.ranks_per_node = std::max(fabric.ranks_per_node, here);
    gpus += here;
    job_ranks += started;
    most_ranks = std::max(most_ranks, started);
    network = std::min(network, network_of(node));
  }
  if (gpus == 0) fabric.ranks_per_node = std::max(1, most_ranks);
  const int there = gpus == 0 ? job_ranks : gpus;
  fabric.ranks = ranks > 0 ? ranks : there;
  fabric.links.node_bytes_per_s = network < std::numeric_limits<double>::infinity() ? network : 0;
  fabric.sources.push_back(fmt::format("Ranks: {} of {} on this job's nodes{}.", there, gpus == 0 ? "the job" : "GPUs",
                                       ranks > 0 ? fmt::format("; {} asked for, placed alike", ranks) : ""));
  if (fabric.links.node_bytes_per_s > 0) {
    fabric.sources.push_back(
        fmt::format("Network: {} of a node in one direction, its active ports of the fastest kind.",
                    rate_text(fabric.links.node_bytes_per_s)));
  }
  if (models.size() == 1) {
    if (const auto hardware = config::find_hardware_for_device(*models.begin(), "")) take_gpu(*hardware, fabric);
  }
  return fabric;
}

Fabric fabric_of(const config::Hardware& hardware, int ranks) {
  if (hardware.gpus_of_node == 0) {
    fail("the hardware file of {} does not say how many GPUs a machine has: it needs `node: {{gpus: 8, network: …}}`",
         hardware.name);
  }
  Fabric fabric;
  fabric.ranks_per_node = hardware.gpus_of_node;
  fabric.ranks = ranks > 0 ? ranks : hardware.gpus_of_node;
  fabric.links.node_bytes_per_s = hardware.node_bytes_per_s;
  take_gpu(hardware, fabric);
  if (hardware.node_bytes_per_s > 0) {
    fabric.sources.push_back(fmt::format("Network: {} of a machine with {} GPUs in one direction.",
                                         rate_text(hardware.node_bytes_per_s), hardware.gpus_of_node));
  }
  return fabric;
}

Bound bound_of_all_reduce(double bytes, const Fabric& fabric) {
  const program::Layout layout{{program::Axis::data, fabric.ranks}};
  const program::Group all{"data", program::AxisSet::of({program::Axis::data}), {}};
  const std::vector<int> node_of = node_of_ranks(fabric);
  const auto over = [&](const program::Links& links) {
    return bytes * program::least_seconds_per_byte(program::Collective::all_reduce, all, layout, node_of, links);
  };
  const int nodes = fabric.nodes();
  if (nodes > 1 && fabric.links.node_bytes_per_s == 0) {
    fail("{} on {} nodes: no active RDMA port is known that joins them; `--hardware h100-sxm` names machines",
         fabric.ranks, nodes);
  }
  Bound bound;
  if (nodes > 1) {
    program::Links network;
    network.node_bytes_per_s = fabric.links.node_bytes_per_s;
    bound.limits.push_back(
        {"network", fmt::format("2 (m - 1) / m x size / {}, m = {} nodes", rate_text(network.node_bytes_per_s), nodes),
         over(network)});
  }
  const double all_links = over(fabric.links);
  if (fabric.links.rank_bytes_per_s > 0 && (bound.limits.empty() || all_links > bound.limits.front().seconds)) {
    const std::string sent = fabric.links.switches_reduce_nodes ? "size" : "2 (n - 1) / n x size";
    const std::string beside =
        nodes > 1 ? fmt::format(" + {}", rate_text(fabric.links.node_bytes_per_s)) : std::string();
    bound.limits.push_back(
        {"links of a GPU",
         fmt::format("{} / ({}{}), n = {} ranks", sent, rate_text(fabric.links.rank_bytes_per_s), beside, fabric.ranks),
         all_links});
  }
  double memory_s = 0;
  if (fabric.memory_bytes_per_s > 0 && bytes > fabric.cache_bytes && fabric.ranks > 1) {
    memory_s = 2 * bytes / fabric.memory_bytes_per_s;
    bound.limits.push_back(
        {"memory of a GPU",
         fmt::format("2 x size / {}, read once and written once", rate_text(fabric.memory_bytes_per_s)), memory_s});
  }
  double step_s = 0;
  if (!bound.limits.empty() && fabric.hardware && fabric.ranks > 1) {
    step_s = sim::least_step_seconds(nodes > 1);
    bound.limits.push_back(
        {"latency",
         fmt::format("one step of NCCL's quickest protocol (LL) over {}", nodes > 1 ? "the network" : "NVLink"),
         step_s});
  }
  for (const LeastTime& limit : bound.limits) bound.seconds = std::max(bound.seconds, limit.seconds);
  if (bound.seconds == 0) {
    fail(
        "nothing is known that limits an all-reduce of {}: no link of the GPUs, no RDMA port; `--hardware h100-sxm` "
        "names machines",
        plural(fabric.ranks, "rank"));
  }
  program::Links with_sharp = fabric.links;
  with_sharp.switches_reduce_network = true;
  bound.with_sharp_s = std::max({memory_s, step_s, over(with_sharp)});
  bound.predicted_s = predicted_seconds(bytes, fabric, node_of, nullptr);
  bound.ring_s = predicted_seconds(bytes, fabric, node_of, "Ring");
  return bound;
}

}  // namespace harness::doctor
