#pragma once

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace harness::mpi {

/// Sleeps between two polls: briefly at first, so that an event that is about to happen is seen at once, then longer
/// and longer. A signal ends a sleep.
class Waiter {
 public:
  explicit Waiter(double max_s) : max_s_(max_s) {}
  void sleep() {
    const timespec time{0, static_cast<long>(next_s_ * 1e9)};
    ::nanosleep(&time, nullptr);
    next_s_ = std::min(max_s_, next_s_ * 1.5);
  }
  void reset() { next_s_ = min_s; }

 private:
  static constexpr double min_s = 50e-6;
  double max_s_;
  double next_s_ = min_s;
};

/// Detects that another rank of the job no longer runs: its process is frozen, or its node or network is down. MPI
/// would wait for such a rank forever.
///
/// The ranks form a ring. A thread of each sends a beat to the next rank every second and listens to the previous one.
/// So every rank is watched at a cost that does not grow with the job, and a rank whose main thread plans, writes files
/// or starts a worker is not mistaken for a frozen one.
///
/// Silence is counted in the thread's own turns, not by a clock: while the whole job is suspended (Ctrl-Z, scontrol
/// suspend) or gets no CPU, no time passes for the watcher either.
class Heartbeat {
 public:
  static constexpr int patience_s = 15;         // of silence
  static constexpr int start_patience_s = 600;  // for MPI_Init and the first collectives: a node may load an image
  static constexpr int grace_s = 10;            // for rank 0 to end the job itself

  /// Must be constructed before MPI_Init: the thread ends this process if start() is not reached in time.
  Heartbeat();
  /// Ends the thread. Calls no MPI.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Returns the lock to hold during every MPI call after start() (MPI_THREAD_SERIALIZED).
  [[nodiscard]] std::unique_lock<std::mutex> hold() const { return std::unique_lock(mpi_); }

  /// Collective. `watches`: the library allows calls from several threads; if false, no rank is watched.
  void start(MPI_Comm ranks, bool watches);
  /// On rank 0, throws job::PeersLost once a rank is missing. Others tell rank 0, which has `grace_s` to end the job.
  void check() const;
  /// Collective, after a barrier and right before MPI_Finalize. Afterwards no heartbeat message is in flight; the
  /// thread ends this process if MPI_Finalize does not return.
  void finish();
  /// Ends the job, with all its processes. Does not return.
  [[noreturn]] void abandon(int exit_code) const;

 private:
  using Host = std::array<char, 64>;
  enum class Phase : std::uint8_t { starting, beating, unwatched, leaving };
  struct Missed {
    std::int32_t rank = 0;
    Host host{};
  };

  void run();
  void beat();
  void listen();
  void miss();
  void learn(const Missed& missed);
  void give_up(const std::string& what) const;
  static std::string words(const Missed& missed);

  mutable std::mutex mpi_;
  // Guarded by mpi_:
  MPI_Comm ranks_ = MPI_COMM_NULL;
  int rank_ = 0, next_ = 0;
  Missed previous_;
  std::int32_t sent_ = 0, heard_ = 0;  // 1: a beat, 0: the last one
  Missed told_, report_;
  MPI_Request sending_ = MPI_REQUEST_NULL, hearing_ = MPI_REQUEST_NULL, telling_ = MPI_REQUEST_NULL,
              reporting_ = MPI_REQUEST_NULL;
  bool has_told_ = false;
  int silence_ = 0;  // turns since the last beat of the previous rank

  std::atomic<Phase> phase_{Phase::starting};  // changed while mpi_ is held
  std::atomic<bool> missed_{false}, heard_last_{false};
  std::string missed_words_;  // written before missed_, once
  Host host_{};

  std::mutex state_;
  std::condition_variable news_;
  bool ended_ = false;  // guarded by state_
  std::thread thread_;  // last: it uses all the others
};

}  // namespace harness::mpi
