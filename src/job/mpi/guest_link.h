#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "job/mpi/ranks.h"
#include "job/wire.h"

namespace harness::mpi {

/// What passes between a host and its guest. A guest's call and the answer to it have the same name.
enum class Call : std::uint64_t { welcome, broadcast, maximum, barrier, node_union, gather, exchange, note };

/// The first that a guest hears: what it does not learn from MPI.
struct Welcome {
  std::int32_t rank = 0, size = 1;
  std::vector<int> node_ranks;
  std::string library;
  double max_sleep_s = 1e-3;
};
template <job::MessageOf<Welcome> M, class Each>
void each_field(M& m, Each& each) {
  each(m.rank, m.size, m.node_ranks, m.library, m.max_sleep_s);
}

/// One end of the socket between them. No call waits. What one end sends arrives in that order; notes are handed out
/// apart, so whoever takes them first takes none later than the call that follows it.
class GuestLink {
 public:
  struct Frame {
    Call call{};
    std::string bytes;
  };

  /// Takes the descriptor over.
  explicit GuestLink(int fd);

  /// Queued, and written as the other end reads.
  void send(Call call, std::string_view bytes);
  void send(const Note& note);
  /// Reads and writes what it can.
  void pump();
  std::optional<Frame> next();
  std::optional<Note> next_note();
  /// The other end is gone, and all that it wrote has been read.
  bool closed() const { return closed_; }

 private:
  void write_some();
  void read_some();
  void take_frames();

  Descriptor end_;
  bool closed_ = false;
  std::string pending_, arriving_;
  std::size_t written_ = 0;  // of what is pending
  std::deque<Frame> frames_;
  std::deque<Note> notes_;
};

}  // namespace harness::mpi
