#include "job/mpi/alarms.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "job/job.h"

namespace harness::mpi {

void Alarms::begin_block(std::int64_t block) {
  block_ = block;
  in_block_ = true;
  current_ = passed_on_ = from_above_ = Alarm::none;
  if (next_block_ == block) current_ = from_above_ = next_alarm_;
}

void Alarms::end_block() {
  in_block_ = false;
}

void Alarms::tell(const Note& note, int to) {
  if (!closed_) ranks_.send(to, note);
}

void Alarms::raise(Alarm alarm) {
  if (alarm <= current_) return;
  current_ = alarm;
  if (ranks_.rank() == 0) {
    from_above_ = alarm;
  } else {
    tell({block_, static_cast<std::int64_t>(alarm), stop_level_}, 0);
  }
  look();
}

void Alarms::take(const Note& note) {
  learn_stop_level(static_cast<int>(note.stop));
  const auto alarm = static_cast<Alarm>(note.severity);
  if (in_block_ && note.block == block_) {
    current_ = std::max(current_, alarm);
    from_above_ = std::max(from_above_, alarm);
  } else if (note.block > block_) {
    next_alarm_ = note.block == next_block_ ? std::max(next_alarm_, alarm) : alarm;
    next_block_ = note.block;
  }
}

int Alarms::own_stop_level() const {
  // A launcher that will kill us soon leaves no time to finish a block: stop while there is time to say so.
  const double since = job::seconds_since_sigterm();
  if (seconds_until_sigkill_ > 0 && since > 0.4 * seconds_until_sigkill_) return 2;
  return std::min(2, job::stop_signals());
}

// By looks, so that a wait is not taken for one in which this rank wrote a file or was itself suspended.
void Alarms::count_waiting() {
  constexpr double longest_look_s = 1;
  // To end a block at once takes up to 7 s: 1.5 s to ask why it ended, 5 s for workers to die. Rank 0 speaks first.
  const double patience_s = ranks_.rank() == 0 ? 8 : 12;
  const double since_s = seconds_since(std::exchange(looked_, std::chrono::steady_clock::now()));
  if (stop_level_ < 2) return;
  waited_s_ += std::min(since_s, longest_look_s);
  if (waited_s_ > patience_s) throw job::PeersLost("stopped by a signal, though other ranks of the job do not answer");
}

void Alarms::look() {
  count_waiting();
  learn_stop_level(own_stop_level());
  while (const auto note = ranks_.receive()) take(*note);
  const bool leader = ranks_.rank() == 0;
  if (!leader && stop_level_ > told_stop_level_) tell({block_, 0, stop_level_}, 0);
  told_stop_level_ = stop_level_;
  if (leader && in_block_ && stop_level_ >= 2) current_ = from_above_ = Alarm::stop;
  if (from_above_ <= passed_on_) return;
  passed_on_ = from_above_;
  for (const int child : {2 * ranks_.rank() + 1, 2 * ranks_.rank() + 2}) {
    if (child < ranks_.size()) tell({block_, static_cast<std::int64_t>(from_above_), stop_level_}, child);
  }
}

void Alarms::close() {
  closed_ = true;
  const auto drain = [this] {
    count_waiting();
    while (ranks_.receive()) {
    }
  };
  ranks_.flush_notes(drain);
  ranks_.barrier(drain);  // until then another rank may still have a note for this one
}

}  // namespace harness::mpi
