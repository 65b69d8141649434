#include "backend/cpu/link_proof.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

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

}  // namespace

LinkSecret draw_secret() {
  LinkSecret secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    fail("the system gives no random numbers: {}", std::strerror(errno));
  return secret;
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

std::uint64_t link_proof(const LinkSecret& lower, const LinkSecret& higher, int speaker) {
  std::array<char, 16> key = lower;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(key[i] ^ higher[i]);
  return siphash(key, std::to_string(speaker));
}

}  // namespace harness::cpu
