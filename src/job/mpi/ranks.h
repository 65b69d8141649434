#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace harness::mpi {

/// A short message between supervisors, outside of any collective.
struct Note {
  std::int64_t block = 0;
  std::int64_t severity = 0;
  std::int64_t stop = 0;
  std::int64_t to = 0;  // the rank that it is for; send() fills it in
};

/// The ranks of a job. "Collective" calls must be made by all ranks in the same order. They wait by testing and
/// sleeping, never inside MPI, and call `idle` at every poll, so that a waiting rank costs next to nothing and can
/// watch its worker and its signals. A failing MPI call throws Error. Where a rank no longer runs, what waits for it at
/// rank 0 throws job::PeersLost; the others wait until rank 0 ends the job (job/mpi/heartbeat.h).
class Ranks {
 public:
  using Idle = std::function<void()>;

  /// Starts the ranks of MPI (MPI_Init_thread). Collective.
  static std::unique_ptr<Ranks> start();
  virtual ~Ranks() = default;  // calls no MPI

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The ranks that share this one's memory, ascending.
  virtual const std::vector<int>& node_ranks() const = 0;
  /// Name and version of the MPI library, as it reports them.
  virtual std::string library() const = 0;

  /// Collective: `bytes` of rank 0 to all.
  virtual void broadcast(std::string& bytes, const Idle& idle) = 0;
  /// Collective: each element becomes its maximum over all ranks.
  virtual void maximum(std::span<std::int64_t> values, const Idle& idle) = 0;
  /// Collective: returns once every rank has called it.
  virtual void barrier(const Idle& idle) = 0;
  /// Collective over the ranks of this node: each element becomes the bitwise or.
  virtual void node_union(std::span<std::uint64_t> bits, const Idle& idle) = 0;
  /// Collective: every rank's bytes, by rank, at rank 0; nothing elsewhere.
  virtual std::vector<std::string> gather(const std::string& bytes, const Idle& idle) = 0;
  /// Collective: delivers (to, bytes) and returns (from, bytes). Costs what is sent, not ranks squared: no rank needs
  /// to know who will send to it.
  virtual std::vector<std::pair<int, std::string>> exchange(const std::vector<std::pair<int, std::string>>& outgoing,
                                                            const Idle& idle) = 0;

  /// Sends without waiting; notes of one sender arrive in order.
  virtual void send(int to, const Note& note) = 0;
  /// A note that has arrived, if any.
  virtual std::optional<Note> receive() = 0;
  /// Waits until every note that this rank sent has been taken, or will be in the barrier that follows.
  virtual void flush_notes(const Idle& idle) = 0;

  /// MPI_Finalize. Collective, last.
  virtual void finish() = 0;
  /// Ends the processes of all ranks, also of those that do not answer. Does not return.
  virtual void abandon(int exit_code) = 0;
};

}  // namespace harness::mpi
