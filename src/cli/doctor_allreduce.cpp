// `doctor --allreduce SIZE`: the least time that an all-reduce can take, and what a prediction expects of it.
#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "doctor/check.h"
#include "report/json.h"
#include "sim/link_time.h"

namespace harness::cli {
namespace {

// A number without a unit is a mistake here, though a configuration takes it for bytes or seconds.
template <class Parse>
double above_zero(const char* option, const std::string& text, Parse parse, const char* example) {
  const auto value = static_cast<double>(option_value(option, text, parse));
  const bool has_unit = text.find_first_not_of("0123456789.+-eE ") != std::string::npos;
  if (value <= 0 || !has_unit)
    fail("{}: found {}; expected a number above 0 with a unit, such as {}", option, quote(text), example);
  return value;
}

// Seconds; predicted_s is 0 where nothing is known.
struct Limits {
  int ranks = 0, nodes = 0;
  double within_node = 0, between_nodes = 0;  // bytes/s of the links in one direction
  double least_s = 0, sharp_s = 0, predicted_s = 0;
};

Limits limits_of(double bytes, int ranks, const config::Hardware& hardware) {
  Limits limits{.ranks = ranks};
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / hardware.gpus_of_node);
  limits.nodes = node_of.back() + 1;
  const sim::Network network = sim::network_of(hardware, {}, node_of);
  limits.within_node = network.rank_bytes_per_s;
  limits.between_nodes = network.node_bytes_per_s;
  if ((limits.nodes > 1 ? limits.between_nodes : limits.within_node) == 0)
    fail("the hardware file of {} does not say what limits an all-reduce over {} on {}", hardware.name,
         plural(ranks, "rank"), plural(limits.nodes, "node"));
  const auto least = [&](bool sharp) {
    const program::Group all{"data", program::AxisSet::of({program::Axis::data}), {}};
    const program::Links links{limits.within_node, limits.between_nodes, network.switches_reduce, sharp};
    const double per_byte = program::least_seconds_per_byte(program::Collective::all_reduce, all,
                                                            {{program::Axis::data, ranks}}, node_of, links);
    return std::max(sim::least_step_seconds(limits.nodes > 1), bytes * per_byte);
  };
  limits.least_s = least(false);
  limits.sharp_s = least(true);
  const int most = std::min(ranks, hardware.gpus_of_node);
  if (most == 1 || limits.within_node > 0) {
    const config::Calibration calibration = config::calibration_named("harness");
    const sim::CollectiveTime time(program::Collective::all_reduce, {{ranks, limits.nodes, most}}, network, calibration,
                                   {});
    limits.predicted_s = time.seconds(bytes);
  }
  return limits;
}

std::string headline_of(const Limits& limits, double bytes, double within_s) {
  std::string text =
      fmt::format("An all-reduce of {} over {} on {} takes at least {}",
                  bytes >= 1e9 ? fmt::format("{:.4g} GB", bytes / 1e9) : show_bytes(bytes),
                  plural(limits.ranks, "rank"), plural(limits.nodes, "node"), show_seconds(limits.least_s));
  if (limits.sharp_s < limits.least_s)
    text += fmt::format(", {} where the network's switches add up (SHARP)", show_seconds(limits.sharp_s));
  if (limits.predicted_s > 0) text += fmt::format("; {} are predicted", show_seconds(limits.predicted_s));
  if (within_s == 0) return text + ".";
  const char* verdict = within_s < limits.sharp_s   ? "impossible"
                        : within_s < limits.least_s ? "possible with SHARP alone"
                                                    : "possible";
  return fmt::format("{}. Within {}: {}.", text, show_seconds(within_s), verdict);
}

}  // namespace

int all_reduce(const DoctorOptions& options, std::ostream& out) {
  const double bytes = above_zero("--allreduce", options.allreduce, parse_bytes, "14GB");
  const double within_s = options.within.empty() ? 0 : above_zero("--within", options.within, parse_seconds, "2ms");
  const config::Hardware hardware = config::hardware_named(options.hardware);
  if (hardware.gpus_of_node == 0)
    fail("the hardware file of {} does not say how many GPUs a machine has: it needs `node: {{gpus: 8, network: …}}`",
         hardware.name);
  const Limits limits = limits_of(bytes, options.ranks > 0 ? options.ranks : hardware.gpus_of_node, hardware);
  if (options.format == "json") {
    out << report::json_text({{"schema", "harness-doctor-allreduce"},
                              {"schema_version", 2},
                              {"ranks", limits.ranks},
                              {"nodes", limits.nodes},
                              {"least_s", limits.least_s},
                              {"least_with_sharp_s", limits.sharp_s},
                              {"predicted_s", limits.predicted_s}});
  } else {
    report::Document document;
    document.headline = headline_of(limits, bytes, within_s);
    document.sections.emplace_back().add(report::Paragraph{
        fmt::format("Links in one direction: {} between the GPUs of a node, {} between nodes. The least time is that "
                    "of any algorithm (docs/method.md, \"The limit\"), the prediction that of `plan --backend sim`.",
                    doctor::rate_text(limits.within_node), doctor::rate_text(limits.between_nodes))});
    print(std::move(document), options.format, under_a_launcher, out);
  }
  return within_s > 0 && within_s < limits.sharp_s ? 2 : 0;
}

}  // namespace harness::cli
