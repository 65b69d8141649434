#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

// ---- Names

// Who reads an environment variable that looks like NCCL's: NCCL itself (2.18 to 2.30), other software, or nobody. NCCL
// ignores a name that it does not know, so a slip in one measures nothing.

/// Whether NCCL reads it by strtoll(), whatever it says: "NCCL_LL_BUFFSIZE".
bool reads_integer(std::string_view name);
/// Whether NCCL itself reads it.
bool knows(std::string_view name);
/// The known name nearest to it, "" if none is near.
std::string nearest_name(std::string_view name);

/// A name that NCCL ignores and that is nevertheless no slip.
struct ForeignName {
  std::string_view names;  // "NCCL_INC NCCL_INCLUDE", or how names begin: "NCCL_FASTRAK_"
  std::string_view owner;  // the software that reads or sets it: "PyTorch"; "": nobody, and `note` says what to set
  std::string_view note;   // its purpose and what to know about it, without a full stop

  /// A name that ends with '_' stands for all names that begin with it.
  bool is_prefix() const { return names.ends_with('_'); }
};

/// The row with this very name, else the row with the longest prefix of it; nullptr if no row fits and for a name that
/// NCCL reads itself (NCCL_TUNER_PLUGIN, although tuner plug-ins read NCCL_TUNER_…).
const ForeignName* find_foreign_name(std::string_view name);
std::span<const ForeignName> foreign_names();

// ---- Values

// Values of NCCL's environment variables in canonical spelling. The functions that begin with `canonical` take a text
// without blanks around it, but not "default", which their caller knows (their messages list it). They throw Error with
// what was found and what is allowed. They refuse what NCCL reads differently from what is written: it ignores words
// that it does not know, and reads an integer with strtoll(text, NULL, 0) (src/misc/param.cc), so "4M" silently becomes
// 4 and "on" becomes 0.

/// NCCL's algorithms and protocols by their numbers, as NCCL_ALGO and NCCL_PROTO spell them.
inline constexpr std::array<std::string_view, 7> algorithm_names{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
inline constexpr std::array<std::string_view, 3> protocol_names{"LL", "LL128", "Simple"};

/// NCCL_ALGO and NCCL_PROTO in the grammar of NCCL 2.24 and later (parseList in its src/graph/tuning.cc):
///   value := entry (';' entry)*    entry := [function ':'] ['^'] element (',' element)*
/// Only the first entry may lack a function and then means all five; '^' means all but these. Canonical are NCCL's
/// capitals, elements in NCCL's order, and no blanks.
/// `elements`: algorithm_names or protocol_names.
using Elements = std::span<const std::string_view>;
std::string canonical_choices(std::string_view text, Elements elements);

/// The elements that a value leaves NCCL to choose from, by function: {"AllReduce": {"Tree", "Ring"}, …}. "default"
/// leaves all. All else it accepts and refuses as the function above.
using Choices = std::map<std::string, std::vector<std::string>>;
Choices choices_of(std::string_view text, Elements elements);

/// The number that a person and NCCL both read in `text`: plain decimal or hexadecimal; nullopt for anything else.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// How NCCL would read a text that is no integer: "NCCL … would silently read this as 4".
std::string misread_as(std::string_view text);

std::string canonical_integer(std::string_view text, std::int64_t low, std::int64_t high);
/// "true" or "false"; also reads on and off, 1 and 0.
std::string canonical_flag(std::string_view text);
/// A power of two of bytes, as print_bytes_exact() prints it ("4 MiB").
std::string canonical_bytes(std::string_view text, std::int64_t low, std::int64_t high);
/// How far apart two devices may be, from near to far as NCCL orders them: LOC, NVL, … SYS.
std::string canonical_level(std::string_view text);
const std::vector<std::string>& levels();

/// The value of NCCL_SOCKET_IFNAME or NCCL_IB_HCA: ['^'] ['='] name [':' port] {',' …}. Names are prefixes without '=';
/// '^' means all but these.
struct DeviceList {
  bool all_but = false, exact = false;
  std::vector<std::string> names;

  explicit DeviceList(std::string_view text);
  /// Whether one of its names fits a device such as "eth0" or "mlx5_0:1/IB".
  bool matches(const std::string& name, std::string_view device) const;
  bool allows(std::string_view device) const;
};

}  // namespace harness::nccl
