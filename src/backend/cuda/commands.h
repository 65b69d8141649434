#pragma once

#include <cstdint>
#include <vector>

#include "program/operation.h"

namespace harness::cuda {

/// A step of the host, which puts an operation list on streams in this order.
enum class CommandKind : std::uint8_t {
  launch,       // `operation` on `stream`
  record,       // `event` on `stream`
  wait,         // `stream` waits for the last record of `event`
  group_start,  // the launches up to group_end are communications of `stream` that start as one
  group_end,
};

struct Command {
  CommandKind kind = CommandKind::launch;
  program::StreamId stream = 0;
  program::OperationId operation = -1;
  std::int32_t event = -1;
  bool operator==(const Command&) const = default;
};

struct CommandList {
  std::vector<Command> commands;
  std::int32_t events = 0;  // numbered from 0
};

/// Every stream starts after what stream 0 held before (a fork) and stream 0 ends after all others (a join), so that
/// the list can be captured from stream 0 and lists follow each other in its order. Launches keep the order of the
/// list, in which all ranks start their communications; a fused group stands where its last member does. Pure. Throws
/// Error for an operation that waits for a part of a group that is not complete where it stands.
CommandList make_commands(const std::vector<program::Operation>& operations, std::size_t streams);

}  // namespace harness::cuda
