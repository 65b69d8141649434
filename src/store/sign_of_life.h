#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace harness::store {

/// What an owner writes again and again while he lives: a count that rises, the time by his clock, for people, and how
/// often he writes it. One line of always the same length: "000000000042 2026-11-23T20:03:48Z every  5000 ms".
struct Beat {
  std::int64_t count = 0;
  std::string time;
  std::chrono::milliseconds period{};
};
inline constexpr std::size_t beat_bytes = 49;
std::string print_beat(const Beat& beat);
std::optional<Beat> parse_beat(std::string_view text);
/// Five seconds. Tests shorten it with HARNESS_TEST_SIGN_OF_LIFE_S.
std::chrono::milliseconds beat_period();

/// A thread that writes the beat of this process into files, by plain writes at fixed places, and never through HDF5,
/// which one thread at a time may use.
class SignOfLife {
 public:
  SignOfLife();
  /// Asks the thread to end and does not wait for it: it may hang in a write to a dead file server.
  ~SignOfLife();
  SignOfLife(const SignOfLife&) = delete;
  SignOfLife& operator=(const SignOfLife&) = delete;

  /// From now on also at `offset` of this open file, which it takes over and closes at the end.
  void add(int descriptor, off_t offset);
  /// No beat begins after this.
  void stop();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace harness::store
