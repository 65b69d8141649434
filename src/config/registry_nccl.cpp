// Rows for the NCCL variables that are commonly swept. NCCL reads them from its environment; all others go into `env`,
// by NCCL's own names. nccl/honoured.cpp checks both against NCCL's log.
#include <fmt/format.h>

#include <functional>

#include "base/text.h"
#include "base/units.h"
#include "config/registry_rows.h"
#include "nccl/values.h"

namespace harness::config {
namespace {

using Canonical = std::function<std::string(std::string_view text)>;

// Returns "" if NCCL chooses.
std::string nccl_value(const Settings& s, const std::string& name) {
  const auto it = s.nccl.find(name);
  return it == s.nccl.end() ? "" : it->second;
}

// Completes `row` with what all rows share; "default" precedes its words, and NCCL's variable has its name in capitals
// unless it gives another. Settings hold the canonical value, or none if NCCL is to choose.
Variable nccl_row(const Canonical& canonical, Variable row) {
  if (row.environment_name.empty()) row.environment_name = upper(row.name);
  row.choices.words.insert(row.choices.words.begin(), "default");
  row.backends = only_cuda;
  row.workloads = communicating;
  row.parse = [name = row.name, canonical](Settings& s, std::string_view text) {
    const bool left_out = same_word(trim(text), "default");
    const std::string value = left_out ? "" : canonical(trim(text));
    s.nccl.erase(name);
    if (!left_out) s.nccl[name] = value;
  };
  row.print = [name = row.name](const Settings& s) {
    const std::string value = nccl_value(s, name);
    return value.empty() ? "default" : value;
  };
  row.without_effect = without_communication;
  return row;
}

Canonical integer(std::int64_t low, std::int64_t high) {
  return [=](std::string_view text) { return nccl::canonical_integer(text, low, high); };
}

Canonical elements(nccl::Elements of) {
  return [=](std::string_view text) { return nccl::canonical_choices(text, of); };
}

// Whether a canonical nccl_algo names NVLS as allowed.
bool wants_nvls(const std::string& algorithms) {
  for (const std::string_view part : split(algorithms, ';')) {
    const std::string_view entry = part.substr(part.find(':') + 1);  // npos + 1 is 0
    if (!entry.starts_with('^') && entry.find("NVLS") != std::string_view::npos) return true;
  }
  return false;
}

// Reduction in the NVLink switches came with Hopper. `needs`: whether a canonical value asks for it.
std::function<std::string(const Settings&, const Hardware&)> lacking_nvlink_reduction(
    const std::string& name, bool (*needs)(const std::string& value)) {
  return [=](const Settings& s, const Hardware& h) -> std::string {
    const std::string value = nccl_value(s, name);
    if (value.empty() || !needs(value)) return "";
    return below_capability(h, hopper,
                            fmt::format("{} {} needs reduction in the NVLink switches, which requires", name, value));
  };
}

constexpr std::int64_t max_ctas = 64;  // MAXCHANNELS
constexpr std::int64_t min_buffer = 64 << 10, max_buffer = 1 << 30;

}  // namespace

std::vector<Variable> nccl_variables() {
  return {
      nccl_row(elements(nccl::algorithm_names),
               {.name = "nccl_algo",
                .allowed = "default, Ring, Tree, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT, or by function, "
                           "such as AllReduce:Tree",
                .choices = {{"Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}},
                .examples = {"AllReduce:Tree", "AllReduce:Ring"},
                .help = "NCCL's algorithm. A bare name applies to all functions; since NCCL 2.24 those without it "
                        "fail: write AllReduce:Tree, not Tree",
                .acts_on = {Part::tensor, Part::data, Part::embedding, Part::world},
                .lacking = lacking_nvlink_reduction("nccl_algo", wants_nvls)}),
      nccl_row(elements(nccl::protocol_names),
               {.name = "nccl_proto",
                .allowed = "default, LL, LL128, Simple, or by function, such as AllReduce:LL128",
                .choices = {{"LL", "LL128", "Simple"}},
                .examples = {"AllReduce:LL128", "AllReduce:Simple"},
                .help = "NCCL's protocol. NVLS, CollNet and PAT support only Simple; forcing LL128 on hardware "
                        "that NCCL does not choose it for can corrupt data",
                .acts_on = {Part::tensor, Part::data, Part::embedding, Part::world}}),
      nccl_row(integer(1, max_ctas),
               {.name = "nccl_min_ctas",
                .allowed = "default, 1 to 64",
                .examples = {"8", "16"},
                .help = "minimum number of thread blocks (and so channels) of a collective; at most nccl_max_ctas",
                .acts_on = {Part::tensor, Part::data}}),
      nccl_row(integer(1, max_ctas),
               {.name = "nccl_max_ctas",
                .allowed = "default, 1 to 64",
                .examples = {"8", "16"},
                .help = "maximum number of thread blocks of a collective: how many of the GPU's SMs it may occupy",
                .acts_on = {Part::tensor, Part::data}}),
      nccl_row([](std::string_view text) { return nccl::canonical_bytes(text, min_buffer, max_buffer); },
               {.name = "nccl_buffsize",
                .allowed = "default, a power of two such as 8 MiB",
                .examples = {"8 MiB"},
                .help = "buffer of a channel between two GPUs, for protocol Simple; NCCL's own is 4 MiB",
                .has_ranges = true,
                .acts_on = {Part::data, Part::pipeline},
                .environment_text = [](const std::string& printed) { return std::to_string(parse_bytes(printed)); }}),
      nccl_row(
          integer(0, 2),
          {.name = "nccl_nvls",
           .choices = {{"0", "1", "2"}, true},
           .help = "reduction in the NVLink switches (Hopper and later): 0 off, 1 on or fail, 2 on where supported",
           .acts_on = {Part::tensor, Part::data},
           .lacking = lacking_nvlink_reduction("nccl_nvls", [](const std::string& v) { return v == "1"; }),
           .environment_name = "NCCL_NVLS_ENABLE"}),
      nccl_row(nccl::canonical_flag,
               {.name = "nccl_collnet",
                .choices = {true_false, true},
                .help = "reduction in the network's switches (SHARP); needs a CollNet plug-in and two nodes or more",
                .environment_name = "NCCL_COLLNET_ENABLE",
                .environment_text = [](const std::string& printed) { return printed == "true" ? "1" : "0"; }}),
      nccl_row(nccl::canonical_level,
               {.name = "nccl_p2p_level",
                .choices = {nccl::levels, true},
                .examples = {"NVL", "SYS"},
                .help = "how far apart two GPUs of a node may be and still copy to each other directly; LOC is never"}),
      nccl_row(nccl::canonical_level,
               {.name = "nccl_net_gdr_level",
                .choices = {nccl::levels, true},
                .examples = {"PIX", "SYS"},
                .help = "how far apart GPU and network card may be and still use GPUDirect RDMA; LOC is never",
                .acts_on = {Part::data, Part::pipeline}}),
  };
}

}  // namespace harness::config
