#include "calibrate/files.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::calibrate {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string source_of(const Measured& m) {
  return fmt::format("measured by harness calibrate on {}, {}: {} on {}, {} in {}", m.host, today(),
                     plural(m.ranks, "rank"), plural(m.nodes, "node"), plural(m.rounds, "round"),
                     show_seconds(m.took_s));
}

std::string quoted(std::string text) {
  std::erase(text, '"');
  return fmt::format("\"{}\"", text);
}

std::string share_text(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}
std::string time_text(double seconds) {
  return fmt::format("{:.4g} us", 1e6 * seconds);
}
std::string rate_text(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

std::string curve_text(const config::Curve& curve, const char* size) {
  std::vector<std::string> points;
  for (const config::CurvePoint& p : curve.points())
    points.push_back(fmt::format("{{{}: {:.0f}, time: {}}}", size, p.size, time_text(p.seconds)));
  return fmt::format("[{}]", join(points, ",\n      "));
}

std::string measured_text(const config::MeasuredCurves& curves) {
  if (curves.computations.empty() && curves.communications.empty()) return "";
  std::string text = "# As measured, joined by straight lines on logarithmic axes.\nmeasured:\n";
  const config::Precision* last = nullptr;
  for (const auto& [key, curve] : curves.computations) {
    if (last == nullptr || *last != key.first) text += fmt::format("  {}:\n", config::name_of(key.first));
    last = &key.first;
    text += fmt::format("    {}: {}\n", key.second, curve_text(curve, moves_memory(key.second) ? "bytes" : "flop"));
  }
  if (curves.communications.empty()) return text;
  text += fmt::format("  ranks: {}\n  communications:\n", curves.ranks);
  for (const auto& [name, curve] : curves.communications)
    text += fmt::format("    {}: {}\n", name, curve_text(curve, "bytes"));
  return text;
}

}  // namespace

std::string hardware_text(const Measured& m, const Calibrated& found) {
  std::vector<std::string> peaks, node{fmt::format("gpus: {}", m.ranks_of_node)};
  for (const auto& [precision, flops] : found.peak_flops)
    peaks.push_back(fmt::format("{}: {:.4g} GFLOP/s", config::name_of(precision), flops / 1e9));
  std::string text = fmt::format(
      "# What all ranks reached at once. The peaks are those of the best product: nobody's data sheet.\n"
      "name: {}\nsource: {}\npeak_flops: {{{}}}\n",
      quoted(fmt::format("{} of {}", m.device.name, m.host)), quoted(source_of(m)), join(peaks, ", "));
  if (m.device.memory_bytes > 0) text += fmt::format("memory: {:.0f} B\n", m.device.memory_bytes);
  text += fmt::format("memory_bandwidth: {}    # the quickest operation that moves memory, from whatever cache\n",
                      rate_text(found.memory_bytes_per_s));
  if (m.device.sms > 0) text += fmt::format("sms: {}\n", m.device.sms);
  if (const int capability = m.device.compute_capability; capability > 0)
    text += fmt::format("compute_capability: {}.{}\n", capability / 10, capability % 10);
  if (found.link_bytes_per_s > 0) {
    text += fmt::format("nvlink: {}    # whatever links the ranks of a node: the best bus bandwidth between them\n",
                        rate_text(found.link_bytes_per_s));
  }
  if (found.node_bytes_per_s > 0) node.push_back("network: " + rate_text(found.node_bytes_per_s));
  if (m.device.nvswitch) node.emplace_back("nvswitch: true");
  return text + fmt::format("node: {{{}}}    # ranks that were measured together\n", join(node, ", "));
}

std::string calibration_text(const Measured& m, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware) {
  const config::Calibration& c = found.calibration;
  std::string text =
      "# From micro-benchmarks alone: no step was compared with it, so nothing is known of its error. The shares are "
      "for "
      "what\n# no curve below covers.\n";
  text += fmt::format("name: {}\nsource: {}\nbackend: {}\n", quoted("measured on " + m.host), quoted(source_of(m)),
                      config::name_of(m.backend));
  text += fmt::format("products: {{share: {}, ramp: {:.4g}}}\nmemory: {{share: {}}}\n", share_text(c.product_share),
                      c.product_ramp, share_text(c.memory_share));
  text += fmt::format("attention: {{forward: {}, backward: {}, ramp: {:.4g}}}\n", share_text(c.attention_forward),
                      share_text(c.attention_backward), c.attention_ramp);
  if (c.within_node) {
    text += fmt::format("within_node: {{share: {}, start: {}, message: {}}}\n", share_text(c.within_node->share),
                        time_text(c.within_node->start_s), time_text(c.within_node->message_s));
  }
  if (c.network_share > 0) {
    text += fmt::format("network: {{share: {}, start: {}, hop: 0 s, message: {}}}    # steps are in the start\n",
                        share_text(c.network_share), time_text(c.network_start_s), time_text(c.message_start_s));
  }
  if (m.ranks == 1) {
    text +=
        "within_node: {share: 100 %, start: 0 s, message: 0 s}    # one rank was measured: of its links nothing is "
        "known\n";
  }
  text += fmt::format("overlap: {{taken: {}, kept: {}}}\n", share_text(c.taken_by_communication),
                      share_text(c.kept_by_communication));
  text += fmt::format("software: {{fused: backend, host: 0 s, kernel: {}, step: {}, hop: {}}}\n",
                      time_text(c.software.kernel_s), time_text(c.software.step_s), time_text(c.software.hop_s));
  text += measured_text(c.measured);
  const config::Model& model = wanted.layer;
  text += fmt::format(
      "calibrated:\n  gpus: [{}]\n  ranks: {} to {}\n  hidden: {} to {}\n  sequence: {} to {}\n  message_bytes: 1 to "
      "{}\n",
      hardware, m.ranks, m.ranks, model.hidden, model.hidden, model.sequence, model.sequence,
      std::max<std::int64_t>(4, m.largest_message_bytes));  // the closing all-reduce
  return text;
}

}  // namespace harness::calibrate
