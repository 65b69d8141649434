#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "job/mpi/heartbeat.h"

namespace harness::mpi {

/// How a block is to end early. Higher is more urgent.
enum class Alarm : std::int32_t {
  none,
  peer_lost,  // a worker lost a peer: the cause is not yet known
  time_out,   // find out where every worker is, then stop
  stop,       // the cause is known, or a user asked to stop
};

/// A short message between supervisors, outside of any collective.
struct Note {
  std::int64_t block = 0;
  Alarm alarm = Alarm::none;
  std::int32_t stop_level = 0;
};

/// The ranks of a job. "Collective" calls must be made by all ranks in the same order. They wait by testing and
/// sleeping, never inside MPI, and call `idle` at every poll, so that a waiting rank costs next to nothing and can
/// watch its worker and its signals. A failing MPI call throws Error. If a rank no longer runs, calls that wait for it
/// throw job::PeersLost on rank 0; other ranks wait until rank 0 ends the job (job/mpi/heartbeat.h).
class Ranks {
 public:
  using Idle = std::function<void()>;

  /// Starts the ranks of MPI (MPI_Init_thread). Collective. The destructor calls no MPI.
  Ranks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The ranks that share this one's memory, ascending.
  const std::vector<int>& node_ranks() const { return node_ranks_; }
  /// Name and version of the MPI library, as it reports them.
  std::string library() const;

  /// Collective: copies rank 0's `bytes` to all ranks.
  void broadcast(std::string& bytes, const Idle& idle);
  /// Collective: each element becomes its maximum over all ranks.
  void maximum(std::span<std::int64_t> values, const Idle& idle);
  /// Collective: returns once every rank has called it.
  void barrier(const Idle& idle);
  /// Collective over the ranks of this node: each element becomes the bitwise or.
  void node_union(std::span<std::uint64_t> bits, const Idle& idle);
  /// Collective: returns every rank's bytes, by rank, on rank 0; nothing elsewhere.
  std::vector<std::string> gather(const std::string& bytes, const Idle& idle);
  /// Collective: delivers (to, bytes) and returns (from, bytes). The cost grows with the messages, not with ranks
  /// squared: no rank needs to know its senders in advance.
  std::vector<std::pair<int, std::string>> exchange(const std::vector<std::pair<int, std::string>>& outgoing,
                                                    const Idle& idle);

  /// Sends without waiting; notes of one sender arrive in order.
  void send(int to, const Note& note);
  /// A note that has arrived, if any.
  std::optional<Note> receive();
  /// Waits until every note that this rank sent has been taken, or will be in the barrier that follows.
  void flush_notes(const Idle& idle);

  /// MPI_Finalize. Collective, last.
  void finish();
  /// Ends the processes of all ranks, also of those that do not answer. Does not return.
  void abandon(int exit_code);

 private:
  struct Outgoing {
    Note note;
    MPI_Request request;
  };

  void number_by_node();
  bool receive_next(int tag, std::vector<std::pair<int, std::string>>& received, const Idle& idle);
  void wait(MPI_Request& request, const Idle& idle) const;

  Heartbeat heartbeat_;
  MPI_Comm world_ = MPI_COMM_NULL, node_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  int exchange_parity_ = 0;
  double max_sleep_s_ = 1e-3;
  std::vector<int> node_ranks_;
  std::list<Outgoing> notes_;
};

/// Spreads alarms among supervisors, outside of any collective: to rank 0 directly, from there to all ranks along a
/// binary tree. No call waits for another rank; messages move when look() is called, which every wait does.
class Alarms {
 public:
  /// `seconds_until_sigkill`: time between the launcher's SIGTERM and its SIGKILL; 0: unlimited.
  Alarms(Ranks& ranks, double seconds_until_sigkill) : ranks_(ranks), seconds_until_sigkill_(seconds_until_sigkill) {}

  void begin_block(std::int64_t block);
  void end_block() {
    in_block_ = false;
    waited_s_ = 0;  // all ranks have answered
  }
  /// Raises an alarm of this rank.
  void raise(Alarm alarm);
  /// Receives and passes on what has arrived, and checks for signals. Throws job::PeersLost if this rank has waited too
  /// long for others after it was told to stop at once.
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
  void tell(const Note& note, int to) {
    if (!closed_) ranks_.send(to, note);
  }
  int own_stop_level() const;
  void count_waiting();

  Ranks& ranks_;
  double seconds_until_sigkill_;
  std::int64_t block_ = 0;
  bool in_block_ = false, closed_ = false;
  Alarm current_ = Alarm::none;
  Alarm passed_on_ = Alarm::none;   // to the ranks below
  Alarm from_above_ = Alarm::none;  // latest alarm from rank 0
  std::int64_t next_block_ = 0;     // rank 0 may be ahead of us
  Alarm next_alarm_ = Alarm::none;
  int stop_level_ = 0, told_stop_level_ = 0;
  std::chrono::steady_clock::time_point looked_;
  double waited_s_ = 0;  // since it was told to stop at once, or since the end of the block in which it was
};

}  // namespace harness::mpi
