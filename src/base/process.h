#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace harness {

// This program: its version, its name, the hooks that tests may use, its clock, and what its workers tell each other.

/// "0.1.0 (git 1a2b3c4)": the source this program was built from.
std::string tool_version();
/// Compiler, flags, build type: what travels with every result.
std::vector<std::pair<std::string, std::string>> build_identity();

/// The program as the person called it, as a word of a command to type: "./harness", "harness" or a path. The launcher
/// script says it in HARNESS_CALLED, because it replaces itself with the binary.
std::string called();

/// Variables of the environment by which tests plant faults and pretend machines. Only a program whose main() allows
/// them honours them: build/PRESET/with_hooks/harness and test programs do, what is installed or bundled does not, so
/// that a variable left in somebody's environment cannot forge a verdict.
void allow_test_hooks();

/// The value of such a variable; nullptr where it is unset or not honoured.
const char* test_hook(const char* name);

/// The time by which something runs: this machine's, or that of a clock which overrides both.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Since some moment; never goes back.
  virtual double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  virtual double unix_s() const {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
};
inline const Clock& system_clock() {
  static const Clock clock;
  return clock;
}

/// By the clock that never jumps.
inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

/// "2026-11-23T20:03:48Z"
inline std::string utc_text(double unix_s = system_clock().unix_s()) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

/// Bytes one worker wants another to have before communicators can connect: addresses, unique ids.
struct RendezvousMessage {
  int peer = 0;  // sending: the rank it is for; received: the rank it came from
  std::string key;
  std::string bytes;
};

}  // namespace harness
