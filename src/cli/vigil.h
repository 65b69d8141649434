#pragma once

#include <chrono>
#include <string>

#include "store/imprint.h"

namespace harness::cli {

/// Whether the writer of a file lives, by what the file showed at successive looks: on the boot that the writer names,
/// his process decides at once; elsewhere his count has moved between two looks, or has not moved for three periods.
class Vigil {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Word : std::uint8_t { unfinished, running, killed };

  /// What one look showed, and when that was. Returns what is to be said of it: "" unless it is news.
  std::string look(const store::Imprint& imprint, Clock::time_point now);
  Word word() const { return word_; }

 private:
  Word judge(const store::Imprint& imprint, Clock::time_point now);
  Word word_ = Word::unfinished;
  std::string shown_;          // at the last look
  Clock::time_point since_{};  // when that was first seen
};

}  // namespace harness::cli
