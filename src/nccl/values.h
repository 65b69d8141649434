#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace harness::nccl {

// Values of NCCL's environment variables other than NCCL_ALGO and NCCL_PROTO (nccl/choices.h), in canonical spelling.
// NCCL reads an integer with strtoll(text, NULL, 0) and looks at no more than errno (src/misc/param.cc): "4M" silently
// becomes 4 and "on" becomes 0. It ignores words it does not know. All of that is refused here, with what NCCL would
// have made of it. "default" (not set) stays "default". All throw Error.

/// The number that a person and NCCL both read in `text`: plain decimal or hexadecimal; nullopt for anything else.
std::optional<std::int64_t> parse_integer(std::string_view text);
/// What NCCL would make of a text that is no integer: "NCCL … would silently read this as 4".
std::string misread_as(std::string_view text);

std::string canonical_integer(std::string_view text, std::int64_t low, std::int64_t high);
std::string canonical_choice(std::string_view text, std::span<const std::int64_t> choices);
/// "true" or "false"; read also from on and off, and from 1 and 0 when `as_number`.
std::string canonical_flag(std::string_view text, bool as_number);
/// A power of two of bytes, as print_bytes_exact gives it ("4 MiB").
std::string canonical_bytes(std::string_view text, std::int64_t low, std::int64_t high);
/// How far apart two devices may be: LOC, NVL, … SYS.
std::string canonical_level(std::string_view text);
/// [^][=]name[:port],…: which InfiniBand or RoCE devices (NCCL_IB_HCA).
std::string canonical_hca(std::string_view text);
/// [^][=]name,…: which network interfaces (NCCL_SOCKET_IFNAME).
std::string canonical_interfaces(std::string_view text);

}  // namespace harness::nccl
