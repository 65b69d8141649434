#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// Gloo takes whoever connects first for the peer. These let both ends of a connection prove that they are the ranks
// that their supervisors introduced to each other, and that nobody stands between them.
namespace harness::cpu {

/// Half of a connection's secret. Each end draws one, and the supervisors carry it to the other end.
using LinkSecret = std::array<char, 16>;
/// Throws Error where the system has no random numbers.
LinkSecret draw_secret();

/// The addresses of both ends of this process's TCP connection that one of them has accepted where it listened: `here`
/// or `there`. Equal strings at both ends, if one says `here_first`, unless somebody relays what passes. Throws Error
/// if there is no such connection.
std::string ends_of_connection(const sockaddr_storage& here, const sockaddr_storage& there, bool here_first);

/// Shows that rank `speaker` knows the secret: SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012) of its number and the
/// connection's ends, under both halves as the key.
std::uint64_t link_proof(const LinkSecret& lower, const LinkSecret& higher, int speaker, std::string_view ends);

/// SipHash-2-4.
std::uint64_t siphash(const std::array<char, 16>& key, std::string_view text);

}  // namespace harness::cpu
