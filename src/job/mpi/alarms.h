#pragma once

#include <chrono>
#include <cstdint>

#include "job/mpi/ranks.h"

namespace harness::mpi {

/// The way in which a block is to end early. Higher is more urgent.
enum class Alarm : std::int32_t {
  none,
  peer_lost,  // a worker lost a peer: the cause is not yet known
  time_out,   // find out where every worker is, then stop
  stop,       // the cause is known, or a user asked to stop
};

/// Spreads alarms among supervisors, outside of any collective: to rank 0 directly, from there to all ranks along a
/// binary tree. No call waits for another rank; messages move when look() is called, which every wait does.
class Alarms {
 public:
  /// `seconds_until_sigkill`: time between the launcher's SIGTERM and its SIGKILL; 0: unlimited.
  Alarms(Ranks& ranks, double seconds_until_sigkill) : ranks_(ranks), seconds_until_sigkill_(seconds_until_sigkill) {}

  void begin_block(std::int64_t block);
  void end_block();
  /// Raises an alarm of this rank.
  void raise(Alarm alarm);
  /// Receives and passes on what has arrived, and checks for signals. Throws job::PeersLost when this rank has waited
  /// for others for long after it was told to stop at once.
  void look();

  /// The alarm of the current block, as far as known here.
  Alarm current() const { return current_; }
  /// 0 none, 1 finish the block, 2 stop now: maximum over all ranks, as far as known here.
  int stop_level() const { return stop_level_; }
  void learn_stop_level(int level) { stop_level_ = std::max(stop_level_, level); }

  /// Collective. Afterwards no note is in flight, and none is sent.
  void close();

 private:
  void take(const Note& note);
  void tell(const Note& note, int to);
  int own_stop_level() const;
  void count_waiting();

  Ranks& ranks_;
  double seconds_until_sigkill_;
  std::int64_t block_ = 0;
  bool in_block_ = false, closed_ = false;
  Alarm current_ = Alarm::none;
  Alarm passed_on_ = Alarm::none;   // to the ranks below
  Alarm from_above_ = Alarm::none;  // what rank 0 has said
  std::int64_t next_block_ = 0;     // rank 0 may be ahead of us
  Alarm next_alarm_ = Alarm::none;
  int stop_level_ = 0, told_stop_level_ = 0;
  std::chrono::steady_clock::time_point looked_;
  double waited_s_ = 0;  // since it was told to stop at once
};

}  // namespace harness::mpi
