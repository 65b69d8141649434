#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

// ---- Names

// The software that reads an environment variable that looks like NCCL's: NCCL itself (2.18 to 2.30), other software,
// or none. NCCL ignores unknown names, so a misspelt variable has no effect.

/// Whether NCCL parses its value with strtoll(), whatever the text: "NCCL_LL_BUFFSIZE".
bool reads_integer(std::string_view name);
/// Whether NCCL itself reads it.
bool knows(std::string_view name);
/// Returns the nearest known name, "" if none is near.
std::string nearest_name(std::string_view name);

/// A name that NCCL ignores but that is not misspelt.
struct ForeignName {
  std::string_view names;  // "NCCL_INC NCCL_INCLUDE", or how names begin: "NCCL_FASTRAK_"
  std::string_view owner;  // the software that reads or sets it: "PyTorch"; "": none, and `note` says what to set
  std::string_view note;   // its purpose and what to know about it, without a full stop

  /// A name that ends with '_' stands for all names that begin with it.
  bool is_prefix() const { return names.ends_with('_'); }
};

/// Returns the row with this exact name, else the row with its longest prefix; nullptr if no row fits or if NCCL itself
/// reads the name (NCCL_TUNER_PLUGIN, although tuner plug-ins read NCCL_TUNER_…).
const ForeignName* find_foreign_name(std::string_view name);
std::span<const ForeignName> foreign_names();

// ---- Values

// Values of NCCL's environment variables in canonical spelling. The functions named canonical_… take trimmed text other
// than "default", which their caller handles (their messages list it). They throw an Error that states what was found
// and what is allowed. They reject what NCCL would misread: it ignores unknown words, and reads an integer with
// strtoll(text, NULL, 0) (src/misc/param.cc), so "4M" silently becomes 4 and "on" becomes 0.

/// NCCL's algorithms and protocols by their numbers, as NCCL_ALGO and NCCL_PROTO spell them.
inline const std::vector<std::string> algorithm_names{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                      "NVLSTree", "PAT"};
inline const std::vector<std::string> protocol_names{"LL", "LL128", "Simple"};

/// NCCL_ALGO and NCCL_PROTO in the grammar of NCCL 2.24 and later (parseList in its src/graph/tuning.cc):
///   value := entry (';' entry)*    entry := [function ':'] ['^'] element (',' element)*
/// Only the first entry may omit its function, which then means all five; '^' means all but these. The canonical form
/// has NCCL's capitals, elements in NCCL's order, and no blanks.
/// `elements`: algorithm_names or protocol_names.
using Elements = std::span<const std::string>;
std::string canonical_choices(std::string_view text, Elements elements);

/// Returns the elements that a value lets NCCL choose from, by function: {"AllReduce": {"Tree", "Ring"}, …}. "default"
/// allows all. Accepts and rejects everything else like canonical_choices().
using Choices = std::map<std::string, std::vector<std::string>>;
Choices choices_of(std::string_view text, Elements elements);

/// Parses an integer that NCCL reads as it is written: plain decimal or hexadecimal. nullopt for anything else.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// Describes how NCCL would read a text that is not an integer: "NCCL … would silently read this as 4".
std::string misread_as(std::string_view text);

std::string canonical_integer(std::string_view text, std::int64_t low, std::int64_t high);
/// Returns "true" or "false"; also accepts on and off, 1 and 0.
std::string canonical_flag(std::string_view text);
/// Returns a power of two of bytes as print_bytes_exact() prints it ("4 MiB").
std::string canonical_bytes(std::string_view text, std::int64_t low, std::int64_t high);
/// Returns one of `levels`: how far apart two devices may be.
std::string canonical_level(std::string_view text);
/// From near to far: topoPathTypeStr in NCCL's src/graph/topo.cc.
inline const std::vector<std::string> levels{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};

/// The value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: ['^'] ['='] name [':' port] {',' …}. Names are prefixes without '=';
/// '^' means all but these.
struct DeviceList {
  bool all_but = false, exact = false;
  std::vector<std::string> names;

  explicit DeviceList(std::string_view text);
  /// Whether `name`, one of its names, matches a device such as "eth0" or "mlx5_0:1/IB".
  bool matches(const std::string& name, std::string_view device) const;
  bool allows(std::string_view device) const;
};

}  // namespace harness::nccl
