#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rendezvous.h"
#include "base/text.h"
#include "job/job.h"

namespace harness::job {

/// The type of a frame between a supervisor and its worker. The supervisor sends order, peers, go, ask and bye, the
/// worker the others.
enum class FrameType : std::uint32_t {
  order = 1,  // WorkerOrder
  published,  // Published
  peers,      // rendezvous messages from others
  ready,      // initialised, will run at `go`
  go,
  ask,         // where are you? answered by `progress` from a thread that is never busy
  progress,    // WorkerProgress
  samples,     // Samples
  failure,     // WorkerFailure, then the worker ends
  last_words,  // WorkerProgress, written while crashing
  bye,         // your samples have arrived: end
};

/// The descriptors of the pipes between them in a worker. Not 0 and 1, because profilers and libraries print; and high,
/// because scripts take low ones for themselves.
inline constexpr int orders_descriptor = 198, reports_descriptor = 199;

struct Frame {
  FrameType type{};
  std::string payload;
};

/// The most that a payload of this type can be. A stream that announces more does not come from a worker of harness.
std::uint64_t max_payload_bytes(FrameType type);

/// A frame as bytes: type (32 bits), length (64 bits), payload.
std::string frame_bytes(FrameType type, std::string_view payload);

/// Reassembles frames from a byte stream.
class FrameReader {
 public:
  /// Keeps nothing of a damaged stream.
  void append(std::string_view bytes);
  /// The next complete frame, if there is one.
  std::optional<Frame> next();
  /// The stream held bytes that are not a frame: next() returns nothing any more.
  bool damaged() const { return damaged_; }

 private:
  std::string buffer_;
  bool damaged_ = false;
};

/// The order from a supervisor to its worker.
struct WorkerOrder {
  BlockRequest request;
  int rank = 0;  // of the layout
  int threads = 1;
  double memory_limit_bytes = 0;        // 0: none
  int local_rank = 0, local_ranks = 1;  // among the block's ranks on this node
};

/// An order from rank 0 to the other supervisors: run a block, answer a question, or finish.
struct JobOrder {
  enum class Kind : std::int32_t { run, ask, finish };
  Kind kind = Kind::run;
  std::int32_t exit_code = 0;  // to finish with
  std::int64_t block = 0;      // to run, counted from 1
  NameValues environment;      // rank 0's, as far as it is recorded
  BlockOnSet on;
  std::string question = {};  // to ask
};

/// The message that a worker sends once its Program is built.
struct Published {
  std::uint64_t program_hash = 0;
  std::vector<RendezvousMessage> messages;
};

/// The phase that a worker is in.
enum class WorkerPhase : std::int32_t {
  starting,
  building,
  exchanging,
  connecting,
  initializing,
  ready,
  stepping,
  done
};
/// The phase in words, for messages: "while it connected to its peers".
const char* describe(WorkerPhase phase);

/// The progress of a worker. Plain bytes: written by a crashing worker, gathered over MPI.
struct WorkerProgress {
  static constexpr std::int64_t no_step = -1, unknown_step = -2;
  WorkerPhase phase = WorkerPhase::starting;
  std::int32_t in_communication = 0;  // waits for other ranks
  std::int64_t step = no_step;
  std::array<char, 120> operation{};  // title of the current operation, "" if none
};

enum class WorkerFailureKind : std::int32_t { error, out_of_memory, peer_lost };

/// Why a worker gives up.
struct WorkerFailure {
  WorkerFailureKind kind = WorkerFailureKind::error;
  WorkerProgress progress;
  std::string text;
};

/// The message as bytes for any worker or supervisor of this program. Settings travel as the text of their registry
/// variables; encode() throws Error for settings that decode() would not restore. decode() throws Error for damaged
/// bytes. Message: WorkerOrder, JobOrder, Published, std::vector<RendezvousMessage>, Samples, WorkerFailure.
template <class Message>
std::string encode(const Message& message);
template <class Message>
Message decode(std::string_view bytes);

}  // namespace harness::job
