#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/job.h"

namespace harness {

using NameValues = std::vector<std::pair<std::string, std::string>>;

/// What one worker is told.
struct WorkerOrder {
  BlockRequest request;
  int rank = 0;
  int threads = 1;
  double memory_limit_bytes = 0;        // 0: none
  int local_rank = 0, local_ranks = 1;  // among the block's ranks on this node
};

/// Text that any worker or supervisor of this program reads back as the same request. Throws Error for a request that
/// would not come back the same.
std::string encode(const BlockRequest& request);
BlockRequest decode_request(std::string_view text);
std::string encode(const WorkerOrder& order);
WorkerOrder decode_order(std::string_view text);

/// What a worker says once its Program is built.
struct Published {
  std::uint64_t program_hash = 0;
  std::vector<RendezvousMessage> messages;
};
std::string encode(const Published& published);
Published decode_published(std::string_view bytes);
std::string encode(const std::vector<RendezvousMessage>& messages);
std::vector<RendezvousMessage> decode_rendezvous(std::string_view bytes);
std::string encode(const BlockSamples& samples);
BlockSamples decode_samples(std::string_view bytes);

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

/// Where a worker has got to. Plain bytes: written by a crashing worker, gathered over MPI.
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
std::string encode(const WorkerFailure& failure);
WorkerFailure decode_failure(std::string_view bytes);

}  // namespace harness
