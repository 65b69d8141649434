#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// Gloo takes whoever connects first for the peer. These let both ends of a connection prove that they are the ranks
// that their supervisors introduced to each other. Gloo shows nobody its sockets, so the proof does not cover their
// addresses: who stands between two ranks and passes on all that they say is not found.
namespace harness::cpu {

/// Half of a connection's secret. Each end draws one, and the supervisors carry it to the other end.
using LinkSecret = std::array<char, 16>;
/// Throws Error where the system has no random numbers.
LinkSecret draw_secret();

/// Shows that rank `speaker` knows the secret: SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012) of its number, under
/// both halves as the key.
std::uint64_t link_proof(const LinkSecret& lower, const LinkSecret& higher, int speaker);

/// SipHash-2-4.
std::uint64_t siphash(const std::array<char, 16>& key, std::string_view text);

}  // namespace harness::cpu
