#include "backend/cpu/link_proof.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace harness::cpu {
namespace {

std::uint64_t word_at(const char* from) {  // little-endian, as x86 and ARM have it
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

class SipState {
 public:
  explicit SipState(const std::array<char, 16>& key) {
    const std::uint64_t low = word_at(key.data()), high = word_at(key.data() + 8);
    v_ = {low ^ 0x736f6d6570736575u, high ^ 0x646f72616e646f6du, low ^ 0x6c7967656e657261u, high ^ 0x7465646279746573u};
  }
  void take(std::uint64_t word) {
    v_[3] ^= word;
    turn(2);
    v_[0] ^= word;
  }
  std::uint64_t finish() {
    v_[2] ^= 0xff;
    turn(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void turn(int rounds) {
    auto& [a, b, c, d] = v_;
    for (int i = 0; i < rounds; ++i) {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
  std::array<std::uint64_t, 4> v_;
};

std::string text_of(const sockaddr_storage& end) {
  const auto bytes = [](const auto& part) { return std::string(reinterpret_cast<const char*>(&part), sizeof part); };
  if (end.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(end);
    return "4" + bytes(v4.sin_addr) + bytes(v4.sin_port);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(end);
  return "6" + bytes(v6.sin6_addr) + bytes(v6.sin6_port);
}

// "" of what is no connected socket.
std::string end_of(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage end{};
  socklen_t length = sizeof end;
  if (ask(descriptor, reinterpret_cast<sockaddr*>(&end), &length) != 0) return "";
  return end.ss_family == AF_INET || end.ss_family == AF_INET6 ? text_of(end) : "";
}

}  // namespace

LinkSecret draw_secret() {
  LinkSecret secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    fail("the system gives no random numbers: {}", std::strerror(errno));
  return secret;
}

std::string ends_of_connection(const sockaddr_storage& here, const sockaddr_storage& there, bool here_first) {
  const std::string listened = text_of(here), called = text_of(there);
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const int descriptor = std::atoi(entry->path().filename().c_str());
    const std::string own = end_of(descriptor, &::getsockname), other = end_of(descriptor, &::getpeername);
    if (other.empty() || (own != listened && other != called)) continue;
    return here_first ? own + other : other + own;
  }
  fail("the connection has ended");
}

std::uint64_t siphash(const std::array<char, 16>& key, std::string_view text) {
  SipState state(key);
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) state.take(word_at(text.data() + at));
  std::array<char, 8> last{};
  text.copy(last.data(), text.size() - at, at);
  last[7] = static_cast<char>(text.size());
  state.take(word_at(last.data()));
  return state.finish();
}

std::uint64_t link_proof(const LinkSecret& lower, const LinkSecret& higher, int speaker, std::string_view ends) {
  std::array<char, 16> key = lower;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(key[i] ^ higher[i]);
  return siphash(key, std::to_string(speaker) + ":" + std::string(ends));
}

}  // namespace harness::cpu
