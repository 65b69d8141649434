#include "config/settings.h"

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Fault>, 7> fault_choices{{{"slow_gpu", Fault::slow_gpu},
                                                      {"slow_link", Fault::slow_link},
                                                      {"pcie_downgraded", Fault::pcie_downgraded},
                                                      {"socket_fallback", Fault::socket_fallback},
                                                      {"no_gpudirect", Fault::no_gpudirect},
                                                      {"acs_on", Fault::acs_on},
                                                      {"tensor_across_nodes", Fault::tensor_across_nodes}}};

// NCCL's rate over one IPoIB interface on 100 Gbit/s (github.com/NVIDIA/nccl/issues/465). A node that falls back to TCP
// mostly has one such interface.
constexpr double usual_socket_bytes_per_s = 4e9;

std::set<Fault> all_faults() {
  std::set<Fault> all;
  for (const auto& [name, fault] : fault_choices) all.insert(fault);
  return all;
}

std::set<Fault> parse_mended(std::string_view text) {
  if (text == "none") return {};
  if (text == "all") return all_faults();
  std::set<Fault> mended;
  for (const std::string_view word : split(text, ',')) mended.insert(parse_choice(trim(word), fault_choices));
  return mended;
}

double parse_socket(std::string_view text) {
  if (text.find_first_of("0123456789") != std::string_view::npos) return parse_bandwidth(text);
  return parse_bool(text) ? usual_socket_bytes_per_s : 0;
}

constexpr int max_place = (1 << 20) - 1;

}  // namespace

const char* name_of(Fault fault) {
  return word_of(fault, fault_choices);
}

std::vector<int> places(const Faults& faults, std::vector<int> node_of) {
  if (!faults.tensor_across_nodes) return node_of;
  std::map<int, int> left;
  for (const int node : node_of) ++left[node];
  std::vector<int> dealt;
  while (dealt.size() < node_of.size()) {
    for (auto& [node, ranks] : left) {
      if (ranks-- > 0) dealt.push_back(node);
    }
  }
  return dealt;
}

Faults Faults::without(const std::set<Fault>& mended) const {
  Faults left = *this;
  if (mended.contains(Fault::slow_gpu)) left.slow_gpus.clear();
  if (mended.contains(Fault::slow_link)) left.slow_links.clear();
  if (mended.contains(Fault::pcie_downgraded)) left.narrow_pcie.clear();
  if (mended.contains(Fault::socket_fallback)) left.socket_bytes_per_s = 0;
  if (mended.contains(Fault::no_gpudirect)) left.no_gpudirect = false;
  if (mended.contains(Fault::acs_on)) left.acs_on = false;
  if (mended.contains(Fault::tensor_across_nodes)) left.tensor_across_nodes = false;
  return left;
}

std::string print_mended(const std::set<Fault>& mended) {
  if (mended.empty()) return "none";
  if (mended == all_faults()) return "all";
  return join(texts_of_all(mended, [](Fault fault) { return name_of(fault); }), ", ");
}

Field faults_field(Faults& faults, Problems& problems) {
  // The fault of each kind that is being read. The take_… checks below own it and move it into `faults`.
  const auto gpu = std::make_shared<SlowGpu>();
  const auto link = std::make_shared<SlowLink>();
  const auto pcie = std::make_shared<NarrowPcie>();
  const auto take_gpu = [&, gpu](const auto&...) { faults.slow_gpus.push_back(std::exchange(*gpu, {})); };
  const auto take_link = [&, link](const auto&...) { faults.slow_links.push_back(std::exchange(*link, {})); };
  const auto take_pcie = [&, pcie](const YamlNode& node, const std::string& path) {
    if ((pcie->rank < 0) == (pcie->node < 0))
      problems.add(node.place, path, "expected one of rank and node: a GPU's link, or those of all GPUs of a node");
    faults.narrow_pcie.push_back(std::exchange(*pcie, {}));
  };
  const auto place = [](const char* key, int& into, const char* help) {
    return Field::scalar(key, whole_into(into, 0, max_place), help, fmt::format("a {} from 0", key));
  };
  const auto share = [](const char* key, double& into, const char* help) {
    return Field::scalar(key, share_into(into), help, "a share such as 50 %").required();
  };
  return Field::section(
      "faults",
      {Field::sections(
           "slow_gpu",
           {place("rank", gpu->rank, "whose GPU it is").required(), share("speed", gpu->speed, "of its clocks")},
           "GPUs whose clocks are held down", take_gpu),
       Field::sections(
           "slow_link",
           {place("node", link->node, "whose network it is").required(), share("share", link->share, "of its rate")},
           "nodes that have a part of their network", take_link),
       Field::sections("pcie_downgraded",
                       {place("rank", pcie->rank, "whose GPU it is, or"),
                        place("node", pcie->node, "whose GPUs they are"), share("share", pcie->share, "of its rate")},
                       "GPUs with a part of their PCIe link", take_pcie),
       Field::scalar("socket_fallback", parsed_into(faults.socket_bytes_per_s, parse_socket),
                     "NCCL uses TCP instead of RDMA; a node's rate over it, true: 4 GB/s",
                     "true, false, or a bandwidth such as 4 GB/s", "false")
           .or_words(true_false),
       Field::truth("no_gpudirect", faults.no_gpudirect, "what leaves a node is copied through its memory"),
       Field::truth("acs_on", faults.acs_on, "PCIe sends what GPUs give their adapters through the CPU"),
       Field::truth("tensor_across_nodes", faults.tensor_across_nodes,
                    "ranks are dealt to the nodes one by one, so that tensor-parallel ranks stand on different ones")},
      "of predictions: what is wrong with the cluster; mended takes it away", "", "none");
}

Variable mended_variable() {
  return {.name = "mended",
          .allowed = "none, all, or names of faults with commas between them, such as socket_fallback",
          .choices = {{"none", "all"}},
          .examples = {"socket_fallback", "all"},
          .help = "which of the configuration's `faults` are mended; a fix of a ladder adds those that it names",
          .backends = only_sim,
          .parse =
              [](Settings& s, std::string_view text) {
                const std::set<Fault> mended = parse_mended(text);
                if (mended.empty()) s.mended.clear();
                s.mended.insert(mended.begin(), mended.end());
              },
          .print = [](const Settings& s) { return print_mended(s.mended); },
          .workloads = any_workload};
}

}  // namespace harness::config
