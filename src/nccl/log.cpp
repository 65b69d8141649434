#include "nccl/log.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "nccl/values.h"

// Formats: printf strings of NCCL 2.18 to 2.30 (src/enqueue.cc, src/init.cc, src/transport/*.cc, src/misc/param.cc,
// src/graph/paths.cc, src/debug.cc). Comments at each parser note the changes in between.

namespace harness::nccl {
namespace {

constexpr std::size_t max_warnings = 20, max_value_length = 1024;  // NCCL cuts lines there too

using Text = std::string_view;

// Results hold printable ASCII, whatever bytes the log has.
std::string plain(Text text) {
  std::string out(text.substr(0, max_value_length));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

// Returns a word of the log in the spelling of NCCL_ALGO and NCCL_PROTO: the log has numbers until 2.23
// (src/include/nccl_common.h), and capitals such as NVLS_TREE from 2.24 (ncclAlgoToString). Keeps other words.
std::string spelled(Text word, Elements names) {
  std::size_t number = names.size();
  if (Cursor cursor{word}; cursor.integer(number) && cursor.rest.empty() && number < names.size()) return names[number];
  const std::string joined = replaced(word, {{'_', ""}});
  const auto found = std::ranges::find_if(names, [&](Text name) { return same_word(name, joined); });
  return std::string(found == names.end() ? word : *found);
}

// A warning of earlier versions, information since then.
constexpr Text no_verbs = "Failed to open libibverbs.so";

bool is_name(std::string_view text) {
  return !text.empty() && has_only(text, "_");
}

// The value of a gpu_direct… fact.
Text direct_text(bool enabled, bool disabled) {
  if (enabled && disabled) return "on some connections";
  return enabled ? "enabled" : "disabled";
}

}  // namespace

bool LogReader::has_room(std::size_t bytes) {
  if (bytes > room_) return false;
  room_ -= bytes;
  return true;
}

// Adds a value to those of a fact unless it is already there.
void LogReader::fact(const std::string& name, Text value) {
  auto row = std::ranges::find(facts_, name, &decltype(facts_)::value_type::first);
  std::string text = plain(value);
  const bool known = row != facts_.end() && std::ranges::find(row->second, text) != row->second.end();
  if (known || !has_room(sizeof(*row) + name.size() + text.size())) return;
  if (row == facts_.end()) row = facts_.insert(facts_.end(), {name, {}});
  row->second.push_back(std::move(text));
}

// "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}" since 2.24; before "AllReduce: 1048576
// Bytes -> Algo 1 proto 2 time 12.3" (2.23) and the same without its function (2.20 to 2.22; commented out earlier).
// "AllReduce [Symmetric]: 1048576 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8 nthreads 512 nWorks 1" since 2.27;
// "AllGather [Copy Engine]: 1048576 Bytes -> cudaMemcpy…" after 2.28.
bool LogReader::call(Text message) {
  const auto arrow = message.find(" Bytes -> ");
  if (arrow == Text::npos) return false;
  Text before = message.substr(0, arrow);
  const auto blank = before.rfind(' ');
  std::int64_t bytes = 0;
  Cursor number{blank == Text::npos ? before : before.substr(blank + 1)};
  if (!number.integer(bytes) || !number.rest.empty() || bytes < 0) return true;
  before = blank == Text::npos ? Text() : before.substr(0, blank);
  if (before.ends_with(':')) before.remove_suffix(1);
  const Text function = before.substr(0, before.find(' '));
  if (!function.empty() && !is_name(function)) return true;

  Cursor cursor{message.substr(arrow + Text(" Bytes -> ").size())};
  Key key{function, bytes, "", "", -1, -1};
  auto& [f, b, algorithm, protocol, first, last] = key;
  if (before.ends_with("[Symmetric]") && cursor.literal("Kernel ")) {
    algorithm = "Symmetric";
    protocol = cursor.word();
    if (!is_name(protocol)) return true;
    int channels = 0;
    if (!cursor.literal(" nchannels ") || !cursor.integer(channels) || channels < 1) return true;
    first = 0;
    last = channels - 1;
  } else if (before.ends_with("[Copy Engine]") || before.ends_with("[Hierarchical CE]")) {
    algorithm = "CopyEngine";
  } else {
    if (!cursor.literal("Algo ")) return true;
    algorithm = spelled(cursor.word(), algorithm_names);
    if (!cursor.literal(" proto ")) return true;
    protocol = spelled(cursor.word(), protocol_names);
    if (!is_name(algorithm) || !is_name(protocol)) return true;
    if (cursor.literal(" channel{Lo..Hi}={")) {
      if (!cursor.integer(first) || !cursor.literal("..") || !cursor.integer(last) || !cursor.literal("}")) return true;
    } else if (!cursor.literal(" time ")) {
      return true;  // cut off: its channels are not known
    }
  }
  if (calls_.contains(key) || has_room(sizeof(Key) + function.size())) ++calls_[key];
  return true;
}

// "NCCL_BUFFSIZE set by environment to 4194304." (integers end in a dot), "NCCL_SOCKET_IFNAME set by environment to
// eth0", "NCCL_IB_HCA set to mlx5_0".
bool LogReader::environment(Text message) {
  Cursor cursor{message};
  const std::string name(cursor.word());
  if (!name.starts_with("NCCL_") || !is_name(name)) return false;
  if (!cursor.literal(" set by environment to ") && !cursor.literal(" set to ")) return false;
  Text value = cursor.rest;
  std::int64_t number = 0;
  if (Cursor integer{value}; integer.integer(number) && integer.rest == ".") value.remove_suffix(1);
  fact(name, value);
  return true;
}

// "Invalid value 99999999999999999999 for NCCL_BUFFSIZE, using default 4194304.", "Invalid NCCL_NTHREADS 100 (must be
// a multiple of 32)" (a warning in earlier versions), "NCCL_MAX_CTAS 0 is too low, leaving it set at -2147483648".
bool LogReader::refused(Text message) {
  Cursor cursor{message};
  if (cursor.literal("Invalid value ") && cursor.after(" for ")) {
    const std::string name(cursor.rest.substr(0, cursor.rest.find(',')));
    if (name.starts_with("NCCL_") && is_name(name)) fact("refused " + name, message);
    return true;
  }
  cursor.rest = message;
  const bool invalid = cursor.literal("Invalid ");
  const std::string name(cursor.word());
  const bool too = cursor.rest.find(" is too low") != Text::npos || cursor.rest.find(" is too big") != Text::npos ||
                   cursor.rest.find(" is not valid") != Text::npos;
  if ((!too && !invalid) || !name.starts_with("NCCL_") || !is_name(name)) return false;
  fact("refused " + name, message);
  return true;
}

// "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "… [send] via NET/IB/0(2)/GDRDMA/Shared", "… via SHM/direct/direct",
// "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA". Transports count senders, as each connection has one. Each end
// decides by itself on GPUDirect RDMA.
bool LogReader::connection(Text message) {
  if (!message.starts_with("Channel ") && !message.starts_with("CollNet ") && !message.starts_with("Ring "))
    return false;
  Cursor cursor{message};
  if (!cursor.after(" via ")) return false;
  Text path = cursor.rest;
  const bool receives = message.find(" [receive] via ") != Text::npos;
  if (path.starts_with("NET/")) {
    Ends& ends = receives ? receives_ : sends_;
    ++ends.all;
    ends.direct += path.find("/GDRDMA") != Text::npos ? 1 : 0;
  }
  if (receives) return true;
  std::string kind;
  if (path.starts_with("P2P/indirect/")) {
    kind = "P2P/indirect";
  } else if (path.starts_with("NET/") || path.starts_with("COLLNET/")) {
    bool through_peer = false;
    for (std::size_t i = 0; i < path.size(); ++i) {
      // "(2)" after the device is the rank that owns it. Keeps "(PCI)" after GDRDMA.
      if (path[i] == '(' && i + 1 < path.size() && is_digit(path[i + 1])) {
        const auto close = path.find(')', i);
        if (close == Text::npos) break;
        through_peer = true;
        i = close;
      } else {
        kind += path[i];
      }
    }
    if (path.starts_with("NET/") && through_peer) ++through_peers_;
  } else if (path.starts_with("P2P/") || path.starts_with("SHM/")) {
    kind = path;
  } else {
    return true;
  }
  kind = plain(kind);
  if (transports_.contains(kind) || has_room(2 * kind.size())) ++transports_[kind];
  return true;
}

bool LogReader::network(Text message) {
  Cursor cursor{message};
  if (cursor.literal("Using network ")) {
    fact("network", cursor.rest);
  } else if (cursor.literal("Bootstrap : Using ") || cursor.literal("Bootstrap: Using ")) {  // no blank since 2.24
    Text interface = cursor.rest;
    if (interface.starts_with('[')) interface = interface.substr(std::min(interface.find(']') + 1, interface.size()));
    fact("bootstrap_interface", interface.substr(0, interface.find(':')));
  } else if (cursor.literal("NET/IB : No device found")) {
    fact("network_devices", "none (IB)");
  } else if (cursor.literal(no_verbs)) {
    fact("libibverbs", "not found");
  } else if (cursor.literal("NET/IB: ")) {
    // "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 260 mtu 5 GID 3 …": verbs' number of the port's active MTU, 5 for 4096.
    int mtu = 0;
    constexpr int smallest = 1, largest = 5;
    if (!cursor.after(" IbDev ") || !cursor.after(" mtu ") || !cursor.integer(mtu)) return false;
    if (mtu >= smallest && mtu <= largest) fact("ib_mtu", std::to_string(128 << mtu));
  } else if (const bool ib = cursor.literal("NET/IB : Using "); ib || cursor.literal("NET/Socket : Using ")) {
    // " [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>"; sockets: " [0]eth0:10.0.0.1<0>"
    std::string devices;
    Text rest = cursor.rest.substr(0, cursor.rest.find(';'));
    while (!rest.empty()) {
      const Text word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      const auto close = word.find(']');
      if (!word.starts_with('[') || close == Text::npos || word.size() < 2 || !is_digit(word[1])) continue;
      Text device = word.substr(close + 1);
      if (!ib) device = device.substr(0, device.find(':'));  // the address adds nothing to the name
      if (!devices.empty()) devices += ' ';
      devices += device;
    }
    if (!devices.empty()) fact("network_devices", devices);
  } else if (cursor.after("GPU Direct RDMA ")) {
    // "GPU Direct RDMA Enabled for GPU 0 / HCA 1 (distance 4 <= 5), read 1", "NET/IB : GPU Direct RDMA Disabled for HCA
    // 0 'mlx5_0'"
    if (cursor.literal("Enabled")) direct_decisions_.insert(true);
    if (cursor.literal("Disabled")) direct_decisions_.insert(false);
  } else {
    return false;
  }
  return true;
}

bool LogReader::communicator(Text message) {
  Cursor cursor{message};
  if (cursor.literal("NCCL version ")) {
    fact("version", cursor.word());
  } else if (cursor.literal("NVLS multicast support is ")) {
    fact("nvls", cursor.literal("not available") ? "not available" : "available");
  } else if (message.ends_with(" p2p channels per peer")) {
    // "… coll channels, [… collnet channels, ]… nvls channels, … p2p channels, … p2p channels per peer": collnet since
    // 2.20.
    std::string value(message);
    for (auto at = value.find(" channels"); at != std::string::npos; at = value.find(" channels", at))
      value.erase(at, 9);
    if (is_digit(value.front())) fact("channels", value);
  } else {
    return false;
  }
  return true;
}

void LogReader::warning(Text message) {
  refused(message);
  if (message.starts_with(no_verbs)) network(message);
  if (warnings_.size() >= max_warnings || message.empty()) return;
  std::string text = plain(message);
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(std::move(text));
}

void LogReader::line(Text text) {
  static constexpr std::array<Text, 4> markers = {"NCCL INFO ", "NCCL WARN ", "NCCL TRACE ", "NCCL CALL "};
  struct Found {
    std::size_t at, marker;
  };
  std::vector<Found> found;
  for (std::size_t m = 0; m < markers.size(); ++m) {
    for (auto at = text.find(markers[m]); at != Text::npos; at = text.find(markers[m], at + 1))
      found.push_back({at, m});
  }
  std::ranges::sort(found, {}, &Found::at);
  if (found.empty() && text.starts_with("NCCL version ")) communicator(text);  // printed without a prefix
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t begin = found[i].at + markers[found[i].marker].size();
    Text message = text.substr(begin, i + 1 < found.size() ? found[i + 1].at - begin : Text::npos);
    if (i + 1 < found.size()) {
      // Cuts off the "host:pid:tid [0] " of the next message, except its host, which merges with the text before it.
      message = message.substr(0, message.rfind(" ["));
      const auto colon = message.rfind(':');
      const auto host = colon == Text::npos || colon == 0 ? Text::npos : message.rfind(':', colon - 1);
      if (host != Text::npos) message = message.substr(0, host);
    }
    while (!message.empty() && Text(" \r\"").find(message.back()) != Text::npos)
      message.remove_suffix(1);  // of CSV too
    if (found[i].marker == 0) {  // tries the readers in turn; each takes its own kind of message
      call(message) || environment(message) || refused(message) || connection(message) || network(message) ||
          communicator(message);
    }
    if (found[i].marker == 1) warning(message);
  }
}

Observed LogReader::finish() {
  const auto tell = [&](const std::string& name, std::int64_t all, std::int64_t direct) {
    if (all > 0) fact(name, direct_text(direct > 0, direct < all));
  };
  tell("gpu_direct_send", sends_.all, sends_.direct);
  tell("gpu_direct_receive", receives_.all, receives_.direct);
  if (const std::int64_t ends = sends_.all + receives_.all; ends > 0) {
    tell("gpu_direct", ends, sends_.direct + receives_.direct);
  } else if (!direct_decisions_.empty()) {
    fact("gpu_direct", direct_text(direct_decisions_.contains(true), direct_decisions_.contains(false)));
  }
  for (const auto& [kind, count] : transports_) facts_.push_back({"transport " + kind, {std::to_string(count)}});
  if (through_peers_ > 0) facts_.push_back({"pxn", {std::to_string(through_peers_)}});

  Observed observed;
  for (auto& [key, count] : calls_) {
    const auto& [function, bytes, algorithm, protocol, first, last] = key;
    observed.calls.push_back({function, bytes, algorithm, protocol, first, last, count});
  }
  for (auto& [name, values] : facts_) {
    observed.facts.emplace_back(std::move(name), join(values, fact_separator));
  }
  observed.warnings = std::move(warnings_);
  return observed;
}

bool is_virtual_interface(std::string_view name) {
  static constexpr std::array<Text, 31> beginnings{
      "docker", "podman",       "virbr",     "vnet", "veth",   "lxc",     "lxd",   "incus",
      "vmnet",  "vboxnet",      "cni",       "cali", "cilium", "flannel", "weave", "kube",
      "antrea", "nodelocaldns", "ovn",       "ovs",  "genev",  "vxlan",   "tun",   "tap",
      "wg",     "zt",           "tailscale", "gre",  "ipip",   "dummy",   "ifb"};
  constexpr Text bridge = "br-";  // Docker's end in a hexadecimal id; "br-ex" and "br-bond0" are real networks
  if (name == "lo" || starts_with_any(name, beginnings)) return true;
  return name.starts_with(bridge) && name.size() > bridge.size() &&
         name.find_first_not_of("0123456789abcdef", bridge.size()) == Text::npos;
}

Observed parse_log(std::string_view text) {
  LogReader reader;
  for (const Text line : split(text, '\n')) reader.line(line);
  return reader.finish();
}

LogFile::LogFile() : folder_("harness-nccl") {
  if (folder_.path().empty()) return;  // no space: then there is no log
  path_ = folder_.path() + "/log";
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,REG", 1);
  ::setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
}

std::string LogFile::take(std::size_t max_bytes) const {
  std::string text = try_read_file(path_, max_bytes, TooLong::cut).text;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  return text;
}

}  // namespace harness::nccl
