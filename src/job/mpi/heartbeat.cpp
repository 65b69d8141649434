#include "job/mpi/heartbeat.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/text.h"
#include "job/job.h"
#include "job/mpi/fault.h"
#include "machine/tree.h"

namespace harness::mpi {
namespace {

constexpr int beat_tag = 11, report_tag = 12;
constexpr std::chrono::seconds turn(1);
constexpr int later_s = 3;        // so that a rank that can name the missing one reports first
constexpr unsigned abort_s = 10;  // for MPI_Abort itself
constexpr std::int32_t last_beat = 0, usual_beat = 1;

constexpr const char* why = "its process is frozen, or its node or network is down";

// Writes the line with one call, because the process may end at any moment.
void say(const std::string& text) {
  const std::string line = "harness: " + escaped_lines(text) + "\n";
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

bool is_done(MPI_Request& request) {
  int done = 0;
  return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

}  // namespace

// The analyzer knows MPI_Wait as the end of a request, but not MPI_Test.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
Heartbeat::Heartbeat() {
  machine::host_name().copy(host_.data(), host_.size() - 1);
  // The main thread takes all signals, because they end its sleeps.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::scoped_lock lock(state_);
    ended_ = true;
  }
  news_.notify_all();
  thread_.join();
}

void Heartbeat::start(MPI_Comm ranks, bool watches) {
  const auto lock = hold();
  int size = 1;
  ranks_ = ranks;
  MPI_Comm_rank(ranks, &rank_);
  MPI_Comm_size(ranks, &size);
  phase_ = Phase::unwatched;
  if (size == 1 || !watches) {
    heard_last_ = true;  // of no rank, so that none counts as missing while MPI_Finalize takes long
    return;
  }
  next_ = (rank_ + 1) % size;
  previous_.rank = (rank_ + size - 1) % size;
  MPI_Sendrecv(host_.data(), static_cast<int>(host_.size()), MPI_BYTE, next_, beat_tag, previous_.host.data(),
               static_cast<int>(host_.size()), MPI_BYTE, previous_.rank, beat_tag, ranks, MPI_STATUS_IGNORE);
  MPI_Irecv(&heard_, 1, MPI_INT32_T, previous_.rank, beat_tag, ranks, &hearing_);
  if (rank_ == 0) MPI_Irecv(&report_, sizeof report_, MPI_BYTE, MPI_ANY_SOURCE, report_tag, ranks, &reporting_);
  phase_ = Phase::beating;
}

void Heartbeat::run() {
  int turns = 0;  // in this phase
  int stuck = 0;  // turns since the main thread entered a call of MPI
  Phase before = Phase::starting;
  std::unique_lock state(state_);
  while (!news_.wait_for(state, turn, [this] { return ended_; })) {
    const Phase now = phase_;
    turns = std::exchange(before, now) == now ? turns + 1 : 0;
    state.unlock();
    if (now == Phase::starting && turns > start_patience_s + later_s)
      give_up(fmt::format("MPI has not started within {} s", start_patience_s));
    if (now == Phase::leaving && turns > patience_s && !heard_last_) {
      say(words(previous_));
      ::_exit(1);
    }
    if (now == Phase::leaving && turns > patience_s + later_s)
      give_up(fmt::format("MPI_Finalize has not returned for {} s", patience_s));
    if (now == Phase::beating) {
      std::unique_lock lock(mpi_, std::try_to_lock);
      for (int tries = 0; !lock && tries < 100; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        static_cast<void>(lock.try_lock());
      }
      stuck = lock ? 0 : stuck + 1;
      if (lock && phase_ == Phase::beating) beat();
      if (stuck > patience_s) give_up(fmt::format("a call of MPI has not returned for {} s", patience_s));
    }
    state.lock();
  }
}

// Requires that mpi_ is held.
void Heartbeat::beat() {
  ++silence_;
  listen();
  if (is_done(sending_)) {  // else the next rank receives nothing, and the rank that watches it knows
    sent_ = usual_beat;
    MPI_Isend(&sent_, 1, MPI_INT32_T, next_, beat_tag, ranks_, &sending_);
  }
  if (silence_ > patience_s) miss();
}

void Heartbeat::listen() {
  while (!heard_last_ && is_done(hearing_)) {
    silence_ = 0;
    heard_last_ = heard_ == last_beat;
    if (!heard_last_) MPI_Irecv(&heard_, 1, MPI_INT32_T, previous_.rank, beat_tag, ranks_, &hearing_);
  }
  if (heard_last_) silence_ = 0;  // it has begun to leave
  if (rank_ == 0 && !missed_ && is_done(reporting_)) learn(report_);
}

// Lets rank 0 end the job, because it knows what to say of the results.
void Heartbeat::miss() {
  if (rank_ == 0) {
    learn(previous_);
  } else if (previous_.rank != 0 && !std::exchange(has_told_, true)) {
    told_ = previous_;
    MPI_Isend(&told_, sizeof told_, MPI_BYTE, 0, report_tag, ranks_, &telling_);
  }
  if (silence_ <= patience_s + (previous_.rank == 0 ? 0 : grace_s)) return;
  say(words(previous_) + ". The job is ended; a sweep continues with --resume");
  abandon(1);
}

void Heartbeat::learn(const Missed& missed) {
  if (missed_) return;
  missed_words_ = words(missed);
  missed_ = true;
}

void Heartbeat::check() const {
  if (missed_) throw job::PeersLost(missed_words_);
}

std::string Heartbeat::words(const Missed& missed) {
  return fmt::format("rank {} on {} has not answered for {} s: {}", missed.rank, text_of(missed.host), patience_s, why);
}

// Does not call MPI_Abort, because the main thread may be inside MPI. A launcher ends the job of a process that exits
// like this.
void Heartbeat::give_up(const std::string& what) const {
  say(fmt::format("{} on {}: another process of the job may be frozen, or its node or network down", what,
                  text_of(host_)));
  ::_exit(1);
}

void Heartbeat::finish() {
  const auto lock = hold();
  if (phase_.exchange(Phase::leaving) != Phase::beating) return;
  Waiter waiter(10e-3);
  while (!is_done(sending_)) waiter.sleep();
  sent_ = last_beat;
  MPI_Isend(&sent_, 1, MPI_INT32_T, next_, beat_tag, ranks_, &sending_);
  for (waiter.reset(); !heard_last_ || !is_done(sending_); waiter.sleep()) listen();
  for (MPI_Request* open : {&reporting_, &telling_}) {
    if (*open == MPI_REQUEST_NULL) continue;
    MPI_Cancel(open);
    MPI_Request_free(open);
  }
}

void Heartbeat::abandon(int exit_code) const {
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(abort_s);
  MPI_Abort(ranks_, exit_code);
  ::_exit(exit_code);
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

}  // namespace harness::mpi
