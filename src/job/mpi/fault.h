#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/messages.h"

namespace harness::mpi {

using job::FaultKind;

/// One rank's view of a failed block. Plain bytes: gathered over MPI.
struct RankReport {
  FaultKind kind = FaultKind::none;
  std::int32_t rank = 0;
  std::int32_t code = 0;  // signal number or exit code
  job::WorkerProgress progress;
  std::array<char, 64> host{};
  std::array<char, 320> text{};        // of an error or a limit
  std::array<char, 640> last_words{};  // the end of the worker's stderr
};

/// Copies as much as fits without cutting a UTF-8 character; keeps the end of `text` when `keep_end` is set.
template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text, bool keep_end = false);
std::string_view text_of(const char* data, std::size_t capacity);
template <std::size_t N>
std::string_view text_of(const std::array<char, N>& from) {
  return text_of(from.data(), N);
}
std::string_view cut_text(std::string_view text, std::size_t room, bool keep_end);

struct Blame {
  int culprit_rank = -1;
  std::string reason;     // one sentence or two, for a message
  std::string signature;  // equal for equal faults at the same rank
};
/// The rank that most likely caused the failure. Reports with kind `none` are ignored; if no other report exists, the
/// rank is -1.
Blame find_culprit(const std::vector<RankReport>& reports);

/// "signal 11 (segmentation fault)".
std::string describe_signal(int number);

template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text, bool keep_end) {
  const std::string_view kept = cut_text(text, N - 1, keep_end);
  to.fill('\0');
  kept.copy(to.data(), kept.size());
}

}  // namespace harness::mpi
