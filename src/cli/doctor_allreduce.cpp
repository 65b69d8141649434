// `doctor --allreduce SIZE`: the least time that an all-reduce can take, and what a prediction expects of it.
#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "config/experiment.h"
#include "doctor/check.h"
#include "machine/tree.h"
#include "report/json.h"
#include "sim/link_time.h"

namespace harness::cli {
namespace {

// The question of `doctor --allreduce`. within_s 0: not asked; ranks 0: as many as there are.
struct AllReduce {
  double bytes = 0, within_s = 0;
  int ranks = 0;
};

// The machines that it runs on. `fabric`: what their ports carry, instead of what `hardware` says.
struct Machines {
  config::Hardware hardware;
  config::Fabric fabric;
  int ranks = 0, ranks_per_node = 0;
};

// A number without a unit is a mistake here, though a configuration takes it for bytes or seconds.
template <class Parse>
double above_zero(const char* option, const std::string& text, Parse parse, const char* example) {
  const auto value = static_cast<double>(option_value(option, text, parse));
  const bool has_unit = text.find_first_not_of("0123456789.+-eE ") != std::string::npos;
  if (value <= 0 || !has_unit)
    fail("{}: found {}; expected a number above 0 with a unit, such as {}", option, quote(text), example);
  return value;
}

// The rate of the active ports of the fastest kind together, in bytes/s: slower ones are for storage.
double network_of(const doctor::Node& node) {
  std::map<double, double> sums;  // by rate
  for (const doctor::Port& port : active_ports(node.facts)) {
    const double bytes_per_s = machine::port_rate_in(node.facts.text(port.key + "rate")) / 8;
    sums[bytes_per_s] += bytes_per_s;
  }
  return sums.empty() ? 0 : sums.rbegin()->second;
}

AllReduce all_reduce_of(const DoctorOptions& options) {
  AllReduce asked{above_zero("--allreduce", options.allreduce, parse_bytes, "14GB"), 0, options.ranks};
  if (!options.within.empty()) asked.within_s = above_zero("--within", options.within, parse_seconds, "2ms");
  return asked;
}

Machines machines_of(const std::string& hardware_name) {
  const config::Hardware hardware = config::hardware_named(hardware_name);
  if (hardware.gpus_of_node == 0)
    fail("the hardware file of {} does not say how many GPUs a machine has: it needs `node: {{gpus: 8, network: …}}`",
         hardware.name);
  return {hardware, {}, hardware.gpus_of_node, hardware.gpus_of_node};
}

// One rank for each GPU, or where there is none for each of the job's.
Machines machines_of(const std::vector<doctor::Node>& nodes) {
  Machines found;
  std::set<std::string> models;
  double network = std::numeric_limits<double>::infinity();
  for (const doctor::Node& node : nodes) {
    const std::vector<std::string> gpus = gpus_of(node.facts);
    for (const std::string& gpu : gpus) models.insert(gpu_model(node.facts, gpu));
    const auto here = static_cast<int>(gpus.empty() ? node.ranks.size() : gpus.size());
    found.ranks += here;
    found.ranks_per_node = std::max(found.ranks_per_node, here);
    network = std::min(network, network_of(node));
  }
  if (models.size() == 1)
    found.hardware = config::find_hardware_for_device(*models.begin(), "").value_or(config::Hardware());
  found.fabric.node_bytes_per_s = network;
  return found;
}

}  // namespace

void check_all_reduce(const DoctorOptions& options) {
  static_cast<void>(all_reduce_of(options));
}

int all_reduce(const DoctorOptions& options, const std::vector<doctor::Node>* on, std::ostream& out) {
  const AllReduce asked = all_reduce_of(options);
  const Machines machines = on != nullptr ? machines_of(*on) : machines_of(options.hardware);
  const int ranks = asked.ranks > 0 ? asked.ranks : machines.ranks, most = std::min(ranks, machines.ranks_per_node);
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / machines.ranks_per_node);
  const int nodes = node_of.back() + 1;
  const sim::Network network = sim::network_of(machines.hardware, machines.fabric, node_of);
  const double within_node = network.rank_bytes_per_s, between_nodes = network.node_bytes_per_s;
  if ((nodes > 1 ? between_nodes : within_node) == 0)
    fail("nothing is known that limits an all-reduce over {} on {}: {}; `--hardware h100-sxm` names machines",
         plural(ranks, "rank"), plural(nodes, "node"), nodes > 1 ? "no active RDMA port joins them" : "no NVLink");
  const auto least = [&](bool sharp) {
    const program::Group all{"data", program::AxisSet::of({program::Axis::data}), {}};
    const program::Links links{within_node, between_nodes, network.switches_reduce, sharp};
    const double per_byte = program::least_seconds_per_byte(program::Collective::all_reduce, all,
                                                            {{program::Axis::data, ranks}}, node_of, links);
    return std::max(sim::least_step_seconds(nodes > 1), asked.bytes * per_byte);
  };
  const double least_s = least(false), sharp_s = least(true);
  double predicted_s = 0;  // not known
  if (!machines.hardware.name.empty() && (most == 1 || within_node > 0)) {
    const config::Calibration calibration = config::calibration_named("harness");
    const sim::CollectiveTime time(program::Collective::all_reduce, {{ranks, nodes, most}}, network, calibration, {});
    predicted_s = time.seconds(asked.bytes);
  }
  const bool asks = asked.within_s > 0, impossible = asks && asked.within_s < sharp_s;
  if (options.format == "json") {
    const report::Json whole{{"schema", "harness-doctor-allreduce"},
                             {"schema_version", 2},
                             {"ranks", ranks},
                             {"nodes", nodes},
                             {"least_s", least_s},
                             {"least_with_sharp_s", sharp_s},
                             {"predicted_s", predicted_s}};
    out << report::json_text(whole);
    return impossible ? 2 : 0;
  }
  std::string text =
      fmt::format("An all-reduce of {} over {} on {} takes at least {}",
                  asked.bytes >= 1e9 ? fmt::format("{:.4g} GB", asked.bytes / 1e9) : show_bytes(asked.bytes),
                  plural(ranks, "rank"), plural(nodes, "node"), show_seconds(least_s));
  if (sharp_s < least_s) text += fmt::format(", {} where the network's switches add up (SHARP)", show_seconds(sharp_s));
  if (predicted_s > 0) text += fmt::format("; {} are predicted", show_seconds(predicted_s));
  if (asks) {
    const char* possible = asked.within_s < least_s ? "possible with SHARP alone" : "possible";
    text += fmt::format(". Within {}: {}", show_seconds(asked.within_s), impossible ? "impossible" : possible);
  }
  report::Document document;
  document.headline = text + ".";
  document.sections.emplace_back().add(
      report::Paragraph{fmt::format("Links in one direction: {} between the GPUs of a node, {} between nodes. The "
                                    "least time is that of any algorithm "
                                    "(docs/method.md, \"The limit\"), the prediction that of `plan --backend sim`.",
                                    doctor::rate_text(within_node), doctor::rate_text(between_nodes))});
  print(std::move(document), options.format, under_a_launcher, out);
  return impossible ? 2 : 0;
}

}  // namespace harness::cli
