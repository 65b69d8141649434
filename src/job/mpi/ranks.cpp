#include "job/mpi/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "job/job.h"

namespace harness::mpi {
namespace {

enum Tag : int { note_tag = 1, exchange_tag = 2 };  // every second exchange uses exchange_tag + 1

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail("{} failed: {}", call, std::string_view(text, length));
}
#define HARNESS_MPI(call, ...) check((static_cast<void>(heartbeat_.hold()), call(__VA_ARGS__)), #call)
// Makes a call that MPI carries out in the background, and waits until that is done.
#define HARNESS_MPI_DONE(idle, call, ...)     \
  do {                                        \
    MPI_Request request = MPI_REQUEST_NULL;   \
    HARNESS_MPI(call, __VA_ARGS__, &request); \
    wait(request, idle);                      \
  } while (false)

int count_of(std::uint64_t n) {
  if (n > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    fail("a message between supervisors has {} bytes, but MPI carries at most {}", n, std::numeric_limits<int>::max());
  }
  return static_cast<int>(n);
}

}  // namespace

// The analyzer knows MPI_Wait as the end of a request, but not MPI_Test.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
Ranks::Ranks() {
  // Containers often forbid the system call behind single-copy transfers, and Open MPI then complains for each rank.
  // Supervisors exchange little; other MPI libraries ignore the variable.
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  int provided = 0;
  HARNESS_MPI(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  HARNESS_MPI(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  number_by_node();
  HARNESS_MPI(MPI_Comm_rank, world_, &rank_);
  HARNESS_MPI(MPI_Comm_size, world_, &size_);
  HARNESS_MPI(MPI_Comm_split_type, world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_);
  HARNESS_MPI(MPI_Comm_set_errhandler, node_, MPI_ERRORS_RETURN);
  int local = 0;
  HARNESS_MPI(MPI_Comm_size, node_, &local);
  node_ranks_.resize(local);
  HARNESS_MPI_DONE({}, MPI_Iallgather, &rank_, 1, MPI_INT, node_ranks_.data(), 1, MPI_INT, node_);
  std::ranges::sort(node_ranks_);
  std::int64_t fullest_node = local;
  maximum({&fullest_node, 1}, {});
  // With up to 16 ranks on a node, polling every millisecond costs next to nothing; with 128 it would cost a core.
  max_sleep_s_ = fullest_node <= 16 ? 1e-3 : 10e-3;
  heartbeat_.start(world_, provided >= MPI_THREAD_SERIALIZED);
}

std::string Ranks::library() const {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  HARNESS_MPI(MPI_Get_library_version, text.data(), &length);
  // The first line; some libraries count the closing zero.
  return text.substr(0, text.find_first_of(std::string_view("\n\0", 2)));
}

void Ranks::broadcast(std::string& bytes, const Idle& idle) {
  std::uint64_t length = bytes.size();
  HARNESS_MPI_DONE(idle, MPI_Ibcast, &length, 1, MPI_UINT64_T, 0, world_);
  bytes.resize(length);
  HARNESS_MPI_DONE(idle, MPI_Ibcast, bytes.data(), count_of(length), MPI_BYTE, 0, world_);
}

void Ranks::maximum(std::span<std::int64_t> values, const Idle& idle) {
  HARNESS_MPI_DONE(idle, MPI_Iallreduce, MPI_IN_PLACE, values.data(), count_of(values.size()), MPI_INT64_T, MPI_MAX,
                   world_);
}

void Ranks::barrier(const Idle& idle) {
  HARNESS_MPI_DONE(idle, MPI_Ibarrier, world_);
}

void Ranks::node_union(std::span<std::uint64_t> bits, const Idle& idle) {
  HARNESS_MPI_DONE(idle, MPI_Iallreduce, MPI_IN_PLACE, bits.data(), count_of(bits.size()), MPI_UINT64_T, MPI_BOR,
                   node_);
}

std::vector<std::string> Ranks::gather(const std::string& bytes, const Idle& idle) {
  const int mine = count_of(bytes.size());
  std::vector<int> counts(rank_ == 0 ? size_ : 0);
  std::vector<int> starts(counts.size());
  HARNESS_MPI_DONE(idle, MPI_Igather, &mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, world_);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    starts[i] = count_of(total);
    total += static_cast<std::uint64_t>(counts[i]);
  }
  std::string all(count_of(total), '\0');
  HARNESS_MPI_DONE(idle, MPI_Igatherv, bytes.data(), mine, MPI_BYTE, all.data(), counts.data(), starts.data(), MPI_BYTE,
                   0, world_);
  std::vector<std::string> parts(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    parts[i] = all.substr(starts[i], counts[i]);
  }
  return parts;
}

// Hoefler, Siebert, Lumsdaine: "Scalable communication protocols for dynamic sparse data exchange", PPoPP 2010. A
// synchronous send completes when its receive has begun. A rank enters the barrier once all of its sends have
// completed; once the barrier completes, so have all sends. A rank may then begin the next exchange while others
// still look for messages of this one, but not the one after, so two alternating tags tell them apart.
std::vector<std::pair<int, std::string>> Ranks::exchange(const std::vector<std::pair<int, std::string>>& outgoing,
                                                         const Idle& idle) {
  const int tag = exchange_tag + std::exchange(exchange_parity_, 1 - exchange_parity_);
  std::vector<MPI_Request> sends(outgoing.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    const auto& [to, bytes] = outgoing[i];
    HARNESS_MPI(MPI_Issend, bytes.data(), count_of(bytes.size()), MPI_BYTE, to, tag, world_, &sends[i]);
  }
  std::vector<std::pair<int, std::string>> received;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool in_barrier = false;
  Waiter waiter(max_sleep_s_);
  for (;;) {
    heartbeat_.check();
    bool news = receive_next(tag, received, idle);
    int done = 0;
    if (in_barrier) {
      HARNESS_MPI(MPI_Test, &barrier, &done, MPI_STATUS_IGNORE);
      if (done != 0) return received;
    } else {
      HARNESS_MPI(MPI_Testall, count_of(sends.size()), sends.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0) {
        HARNESS_MPI(MPI_Ibarrier, world_, &barrier);
        in_barrier = news = true;
      }
    }
    if (idle) idle();
    if (news) {
      waiter.reset();
    } else {
      waiter.sleep();
    }
  }
}

void Ranks::send(int to, const Note& note) {
  Outgoing& out = notes_.emplace_back(Outgoing{note, MPI_REQUEST_NULL});
  HARNESS_MPI(MPI_Issend, &out.note, sizeof out.note, MPI_BYTE, to, note_tag, world_, &out.request);
}

std::optional<Note> Ranks::receive() {
  heartbeat_.check();
  int there = 0;
  MPI_Status status;
  HARNESS_MPI(MPI_Iprobe, MPI_ANY_SOURCE, note_tag, world_, &there, &status);
  if (there == 0) return std::nullopt;
  Note note;
  HARNESS_MPI(MPI_Recv, &note, sizeof note, MPI_BYTE, status.MPI_SOURCE, note_tag, world_, MPI_STATUS_IGNORE);
  return note;
}

void Ranks::flush_notes(const Idle& idle) {
  while (!notes_.empty()) {
    wait(notes_.front().request, idle);
    notes_.pop_front();
  }
}

void Ranks::finish() {
  heartbeat_.finish();
  MPI_Comm_free(&node_);
  MPI_Comm_free(&world_);
  check(MPI_Finalize(), "MPI_Finalize");
}

void Ranks::abandon(int exit_code) {
  const auto lock = heartbeat_.hold();
  heartbeat_.abandon(exit_code);
}

// Launchers distribute ranks over nodes in different ways. This numbers the ranks of a node consecutively, so that
// the first N ranks are whole nodes and tensor parallelism stays inside one. Rank 0 stays rank 0.
void Ranks::number_by_node() {
  MPI_Comm node = MPI_COMM_NULL;
  HARNESS_MPI(MPI_Comm_rank, MPI_COMM_WORLD, &rank_);
  HARNESS_MPI(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  int lowest = rank_;
  HARNESS_MPI(MPI_Bcast, &lowest, 1, MPI_INT, 0, node);
  HARNESS_MPI(MPI_Comm_free, &node);
  // Equal keys keep their order.
  HARNESS_MPI(MPI_Comm_split, MPI_COMM_WORLD, 0, lowest, &world_);
  HARNESS_MPI(MPI_Comm_set_errhandler, world_, MPI_ERRORS_RETURN);
}

bool Ranks::receive_next(int tag, std::vector<std::pair<int, std::string>>& received, const Idle& idle) {
  int there = 0;
  MPI_Status status;
  HARNESS_MPI(MPI_Iprobe, MPI_ANY_SOURCE, tag, world_, &there, &status);
  if (there == 0) return false;
  int length = 0;
  HARNESS_MPI(MPI_Get_count, &status, MPI_BYTE, &length);
  auto& [from, bytes] = received.emplace_back(status.MPI_SOURCE, std::string(length, '\0'));
  HARNESS_MPI_DONE(idle, MPI_Irecv, bytes.data(), length, MPI_BYTE, from, tag, world_);  // may need its sender's help
  return true;
}

void Ranks::wait(MPI_Request& request, const Idle& idle) const {
  Waiter waiter(max_sleep_s_);
  for (;;) {
    heartbeat_.check();
    int done = 0;
    HARNESS_MPI(MPI_Test, &request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    if (idle) idle();
    waiter.sleep();
  }
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

void Alarms::begin_block(std::int64_t block) {
  block_ = block;
  in_block_ = true;
  current_ = passed_on_ = from_above_ = Alarm::none;
  if (next_block_ == block) current_ = from_above_ = next_alarm_;
}

void Alarms::raise(Alarm alarm) {
  if (alarm <= current_) return;
  current_ = alarm;
  if (ranks_.rank() == 0) {
    from_above_ = alarm;
  } else {
    tell({block_, alarm, stop_level_}, 0);
  }
  look();
}

void Alarms::take(const Note& note) {
  learn_stop_level(note.stop_level);
  if (in_block_ && note.block == block_) {
    current_ = std::max(current_, note.alarm);
    from_above_ = std::max(from_above_, note.alarm);
  } else if (note.block > block_) {
    next_alarm_ = note.block == next_block_ ? std::max(next_alarm_, note.alarm) : note.alarm;
    next_block_ = note.block;
  }
}

int Alarms::own_stop_level() const {
  // A launcher that will soon send SIGKILL leaves no time to finish a block: stop while this rank can still say so.
  const double since = job::seconds_since_sigterm();
  if (seconds_until_sigkill_ > 0 && since > 0.4 * seconds_until_sigkill_) return 2;
  return std::min(2, job::stop_signals());
}

// Counts at most longest_look_s per call, so that time in which this rank wrote a file or was suspended is not taken
// for waiting.
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
  if (!leader && stop_level_ > told_stop_level_) tell({block_, Alarm::none, stop_level_}, 0);
  told_stop_level_ = stop_level_;
  if (leader && in_block_ && stop_level_ >= 2) current_ = from_above_ = Alarm::stop;
  if (from_above_ <= passed_on_) return;
  passed_on_ = from_above_;
  for (const int child : {2 * ranks_.rank() + 1, 2 * ranks_.rank() + 2}) {
    if (child < ranks_.size()) tell({block_, from_above_, stop_level_}, child);
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
