#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "job/messages.h"

namespace harness::mpi {

using job::FaultKind;

/// One rank's view of a failed block.
struct RankReport {
  static constexpr std::size_t most_text = 319, most_last_words = 639;

  FaultKind kind = FaultKind::none;
  std::int32_t rank = 0;
  std::int32_t code = 0;  // signal number or exit code
  job::WorkerProgress progress;
  std::string host;
  std::string text;        // of an error or a limit
  std::string last_words;  // the end of the worker's stderr
};
template <job::MessageOf<RankReport> M, class Each>
void each_field(M& m, Each& each) {
  each(m.kind, m.rank, m.code, m.progress, m.host, m.text, m.last_words);
}

template <std::size_t N>
std::string_view text_of(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}
/// As much of a text as fits without cutting a UTF-8 character: its beginning or, if `keep_end` is set, its end.
std::string_view cut_text(std::string_view text, std::size_t room, bool keep_end = false);

struct Blame {
  int culprit_rank = -1;
  std::string reason;     // one sentence or two, for a message
  std::string signature;  // equal for equal faults at the same rank
};
/// The rank that most likely caused the failure. Reports with kind `none` are ignored; if no other report exists, the
/// rank is -1.
Blame find_culprit(const std::vector<RankReport>& reports);

}  // namespace harness::mpi
