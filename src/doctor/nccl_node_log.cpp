#include "doctor/nccl_node_log.h"

#include <charconv>

#include "base/text.h"

namespace harness::doctor {
namespace {

// "transport NET/IB/3/GDRDMA": device 3.
void read_transports(const nccl::Observed& seen, NodeLog& out) {
  for (const auto& [name, value] : seen.facts) {
    const std::vector<std::string> parts = split_text(name, "/");
    out.through_host = out.through_host || name.starts_with("transport SHM");
    out.over_nvlink = out.over_nvlink || name.starts_with("transport P2P/MNNVL");
    if (parts.size() < 3 || parts[0] != "transport NET") continue;
    std::size_t device = 0;
    const char* end = parts[2].data() + parts[2].size();
    if (std::from_chars(parts[2].data(), end, device).ptr == end) out.used.insert(device);
  }
}

}  // namespace

Words values_of(const std::vector<const RankLog*>& logs, std::string_view fact) {
  Words all;
  for (const RankLog* log : logs) {
    for (const std::string& value : split_text(log->seen.fact(fact), nccl::fact_separator)) {
      if (!value.empty()) all.insert(value);
    }
  }
  return all;
}

std::string text_of(const Words& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ", ");
}

NodeLog log_of(const Node& node, const std::vector<RankLog>& all, bool several_nodes) {
  NodeLog out{node, several_nodes};
  for (const RankLog& log : all) {
    if (std::ranges::find(node.ranks, log.rank, &Rank::rank) == node.ranks.end()) continue;
    out.logs.push_back(&log);
    read_transports(log.seen, out);
    for (const std::string& text : log.seen.warnings) out.warnings.insert(text);
    if (out.devices.empty()) out.devices = split_text(log.seen.fact("network_devices"), " ");
  }
  out.networks = values_of(out.logs, "network");
  out.interfaces = values_of(out.logs, "bootstrap_interface");
  out.versions = values_of(out.logs, "version");
  out.nvls = values_of(out.logs, "nvls");
  out.channels = values_of(out.logs, "channels");
  out.direct = values_of(out.logs, "gpu_direct");
  out.direct_sends = values_of(out.logs, "gpu_direct_send");
  out.direct_receives = values_of(out.logs, "gpu_direct_receive");
  out.mtus = values_of(out.logs, "ib_mtu");
  out.with_dma_buf = static_cast<std::size_t>(
      std::ranges::count_if(out.logs, [](const RankLog* log) { return !log->seen.fact("dma_buf").empty(); }));
  return out;
}

}  // namespace harness::doctor
