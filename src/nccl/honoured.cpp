#include "nccl/log.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "nccl/values.h"

namespace harness::nccl {
namespace {

// "4194304", "0x400000", "4 MiB", "true" as a number.
std::optional<std::int64_t> number(std::string_view text) {
  if (const auto value = parse_integer(text)) return value;
  if (text == "true" || text == "on") return 1;
  if (text == "false" || text == "off") return 0;
  try {
    return parse_bytes(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Judge {
 public:
  explicit Judge(const Observed& seen) : seen_(seen) {}

  void judge(const Request& request) {
    name_ = request.name;
    value_ = request.value;
    environment_name_ = request.environment_name;
    if (const std::string refused = seen_.fact("refused " + environment_name_); !refused.empty())
      return violated(refused);
    const auto rule = rules().find(environment_name_);
    try {
      if (const std::string_view network = network_of(environment_name_); network.empty() || on_network(network))
        (this->*(rule == rules().end() ? &Judge::echo : rule->second))();
    } catch (const Error& error) {  // an unchecked value, given by its environment name
      unconfirmed(error.what());
    }
  }

  Compliance compliance;

 private:
  using Rule = void (Judge::*)();
  /// Rules by environment variable; NCCL's echo decides for all others.
  static const std::map<std::string, Rule>& rules() {
    static const std::map<std::string, Rule> all = {
        {"NCCL_ALGO", &Judge::algorithm},       {"NCCL_PROTO", &Judge::protocol},
        {"NCCL_MIN_CTAS", &Judge::min_ctas},    {"NCCL_MAX_CTAS", &Judge::max_ctas},
        {"NCCL_NVLS_ENABLE", &Judge::nvls},     {"NCCL_COLLNET_ENABLE", &Judge::collnet},
        {"NCCL_P2P_LEVEL", &Judge::p2p_level},  {"NCCL_NET_GDR_LEVEL", &Judge::gdr_level},
        {"NCCL_IB_DISABLE", &Judge::ib_disable}};
    return all;
  }

  void violated(std::string why) { compliance.not_honoured.push_back(fmt::format("{}={}: {}", name_, value_, why)); }
  void unconfirmed(std::string why) {
    compliance.not_confirmed.push_back(fmt::format("{}={}: {}", name_, value_, why));
  }
  std::vector<std::string> values(std::string_view fact) const { return split_text(seen_.fact(fact), fact_separator); }
  // Returns the number of channels for collectives of each communicator.
  std::vector<std::int64_t> channel_counts() const {
    std::vector<std::int64_t> counts;
    for (const std::string& channels : values("channels")) {
      std::int64_t count = 0;
      if (Cursor cursor{channels}; cursor.integer(count)) counts.push_back(count);
    }
    return counts;
  }
  bool has_transport(std::string_view part) const {
    return std::ranges::any_of(seen_.facts, [&](const auto& f) {
      return f.first.starts_with("transport ") && f.first.find(part) != std::string::npos;
    });
  }
  std::string used_algorithm(std::string_view prefix) const {
    for (const Call& call : seen_.calls) {
      if (call.algorithm.starts_with(prefix)) return call.function + " with " + call.algorithm;
    }
    return "";
  }

  void algorithm() { choices(algorithm_names, "algorithm", &Call::algorithm); }
  void protocol() { choices(protocol_names, "protocol", &Call::protocol); }

  // ---- calls in the log

  void choices(Elements elements, std::string_view what, std::string Call::*taken) {
    const Choices allowed = choices_of(value_, elements);
    struct Wrong {
      std::int64_t calls = 0, min_bytes = 0, max_bytes = 0;
    };
    std::map<std::string, Wrong> wrong;
    std::int64_t judged = 0;
    for (const Call& call : seen_.calls) {
      // A call whose function the log does not name may be of any function.
      const auto may = [&](const std::vector<std::string>& list) {
        return std::ranges::find(list, call.*taken) != list.end();
      };
      const auto choice = allowed.find(call.function);
      if (!call.function.empty() && (choice == allowed.end() || choice->second.size() == elements.size())) continue;
      const bool followed = call.function.empty()
                                ? std::ranges::any_of(allowed, [&](const auto& entry) { return may(entry.second); })
                                : may(choice->second);
      judged += call.calls;
      if (followed) continue;
      const bool other_kind = call.algorithm == "Symmetric" || call.algorithm == "CopyEngine";
      const std::string did = other_kind ? call.algorithm : call.*taken;
      Wrong& entry = wrong[fmt::format("{} with {}", call.function.empty() ? "a collective" : call.function, did)];
      entry.min_bytes = entry.calls == 0 ? call.bytes : std::min(entry.min_bytes, call.bytes);
      entry.max_bytes = std::max(entry.max_bytes, call.bytes);
      entry.calls += call.calls;
    }
    for (const auto& [did, entry] : wrong) {
      violated(fmt::format("NCCL ran {} ({} of {} to {})", did, plural(entry.calls, "call"),
                           print_bytes_exact(entry.min_bytes), print_bytes_exact(entry.max_bytes)));
    }
    if (judged == 0) unconfirmed(fmt::format("NCCL's log shows no call whose {} this variable decides", what));
  }

  void max_ctas() {
    const auto max_channels = number(value_);
    if (!max_channels) return echo();
    bool known = false;
    for (const Call& call : seen_.calls) {
      if (call.first_channel < 0 || call.last_channel < call.first_channel) continue;
      known = true;
      const int used = call.last_channel - call.first_channel + 1;
      if (used > *max_channels) {
        return violated(
            fmt::format("NCCL ran {} of {} on {} channels", call.function, print_bytes_exact(call.bytes), used));
      }
    }
    for (const std::int64_t count : channel_counts()) {
      known = true;
      if (count > *max_channels) return violated(fmt::format("a communicator has {} channels for collectives", count));
    }
    if (!known) echo();
  }

  // NCCL duplicates channels to reach the minimum, but uses fewer for small messages: judge communicators only.
  void min_ctas() {
    const auto min_channels = number(value_);
    if (!min_channels) return echo();
    const std::vector<std::int64_t> counts = channel_counts();
    for (const std::int64_t count : counts) {
      if (count < *min_channels) return violated(fmt::format("a communicator has {} channels for collectives", count));
    }
    if (counts.empty()) unconfirmed("NCCL's log does not say how many channels its communicators have");
  }

  // ---- NCCL's echo of its environment

  // Whether NCCL reports `wanted` for the environment variable; records a violation or a missing echo.
  bool echoed(const std::string& wanted) {
    const auto echoes = values(environment_name_);
    for (const std::string& value : echoes) {
      const auto asked = number(wanted), got = number(value);
      if (asked && got ? *asked == *got : wanted == value) continue;
      violated(fmt::format("NCCL says {} is {}", environment_name_, value));
      return false;
    }
    if (echoes.empty()) unconfirmed(fmt::format("NCCL's log does not mention {}", environment_name_));
    return !echoes.empty();
  }

  void echo() { echoed(value_); }

  // 0: off, 1: on or fail, 2: where the hardware can.
  void nvls() {
    const auto wanted = number(value_);
    const std::string used = used_algorithm("NVLS"), support = seen_.fact("nvls");
    if (wanted == 0 && !used.empty()) return violated(fmt::format("NCCL ran {}", used));
    if (wanted == 0 && !support.empty() && support != "not available") return violated("NCCL set up NVLS");
    if (wanted == 1 && support.find("not available") != std::string::npos) {
      return violated("NCCL reports that NVLS is not available");
    }
    if (wanted == 1 && support == "available") return;
    echo();
  }

  void collnet() {
    const auto wanted = number(value_);
    const std::string used = used_algorithm("CollNet");
    const bool connected = has_transport("COLLNET/");
    if (wanted == 0 && !used.empty()) return violated(fmt::format("NCCL ran {}", used));
    if (wanted == 0 && connected) return violated("NCCL connected CollNet");
    if (wanted == 1 && (!used.empty() || connected)) return;
    if (!echoed(value_) || wanted != 1) return;
    // NCCL drops it silently without a network plug-in that offers collectives, and on fewer than two nodes.
    unconfirmed(
        "NCCL accepted the setting but did not connect CollNet, which needs a network plug-in and at least two nodes");
  }

  void p2p_level() {
    if (value_ == "LOC" && has_transport(" P2P/")) return violated("NCCL connected GPUs by P2P");
    if (!seen_.fact("NCCL_P2P_DISABLE").empty())
      return violated("NCCL_P2P_DISABLE is set, so NCCL does not read the level");
    echo();
  }

  void gdr_level() {
    const std::string& level = value_;
    const std::string direct = seen_.fact("gpu_direct");
    if (level == "LOC" && has_transport("/GDRDMA")) return violated("NCCL uses GPUDirect RDMA");
    if (level == "LOC" && has_transport(" NET/")) return;
    if (seen_.fact("network") == "Socket") return violated("NCCL's network is Socket, which has no GPUDirect RDMA");
    if (level == "SYS" && direct == "disabled") {
      return violated(
          "NCCL does not use GPUDirect RDMA, although SYS allows it at any distance; check that nvidia-peermem is "
          "loaded");
    }
    echo();
  }

  // ---- networks

  // Returns the network that a variable is for; "": any.
  static std::string_view network_of(std::string_view variable) {
    if (variable.starts_with("NCCL_IB_") && variable != "NCCL_IB_DISABLE") return "IB";
    return variable == "NCCL_SOCKET_NTHREADS" || variable == "NCCL_NSOCKS_PERTHREAD" ? "Socket" : "";
  }

  // Whether the names of all networks begin with `prefix`, or none if it is not `wanted`. Records a violation if not,
  // or that no network is known.
  bool on_network(std::string_view prefix, bool wanted = true) {
    const auto networks = values("network");
    if (networks.empty()) unconfirmed("NCCL's log does not say which network it uses");
    for (const std::string& network : networks) {
      if (network.starts_with(prefix) == wanted) continue;
      violated(fmt::format("NCCL's network is {}{}{}", network, wanted ? ", not " : "", wanted ? prefix : ""));
      return false;
    }
    return !networks.empty();
  }

  // 0 leaves the choice to NCCL: a plug-in's network or sockets are no violation.
  void ib_disable() {
    if (number(value_) == 0) return echo();
    on_network("IB", false);
  }

  const Observed& seen_;
  std::string name_, value_, environment_name_;
};

}  // namespace

Compliance check_compliance(std::span<const Request> requests, const Observed& observed) {
  Judge judge(observed);
  for (const Request& request : requests) judge.judge(request);
  return std::move(judge.compliance);
}

}  // namespace harness::nccl
