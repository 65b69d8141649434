#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rendezvous.h"
#include "base/text.h"
#include "job/job.h"

namespace harness::job {

/// What one worker is told.
struct WorkerOrder {
  BlockRequest request;
  int rank = 0;  // of the layout
  int threads = 1;
  double memory_limit_bytes = 0;        // 0: none
  int local_rank = 0, local_ranks = 1;  // among the block's ranks on this node
  std::vector<std::string> warnings;    // of its supervisor's, to be told with its own
};

/// What rank 0 tells the other supervisors: to run a block, to answer a question, or to finish.
struct JobOrder {
  enum class Kind : std::int32_t { run, ask, finish };
  Kind kind = Kind::run;
  std::int32_t exit_code = 0;  // to finish with
  std::int64_t block = 0;      // to run, counted from 1
  NameValues environment;      // rank 0's, as far as it is recorded
  BlockOnSet on;
  std::string question = {};  // to ask
};

/// What a worker sends once its Program is built.
struct Published {
  std::uint64_t program_hash = 0;
  std::vector<RendezvousMessage> messages;
};

/// What a worker is doing.
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
/// "while it connected to its peers"; for people.
const char* describe(WorkerPhase phase);

/// How far a worker has come. Plain bytes: written by a crashing worker, gathered over MPI.
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
