#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/layout.h"
#include "program/operation.h"

namespace harness::program {

enum class BufferKind : std::uint8_t {
  persistent,  // lives as long as the worker: weights, moments, counters
  transient,   // lives within a step; planned into one arena by lifetime
  input,       // filled by the host before each step, fixed capacity: tokens, labels, learning rate
  output,      // read by the host after a block: the ring of losses
};

struct Buffer {
  std::string name;
  DType type = DType::f32;
  std::int64_t count = 0;  // elements
  BufferKind kind = BufferKind::transient;
  std::int64_t bytes() const { return count * size_of(type); }
};

/// One role's work: `init` once, then `step` again and again, both over the same buffers and streams. Operations
/// stand in an order that respects every dependency (a wait names an earlier operation), and a rank starts its
/// communications in that order. The whole list completes before the next step's begins. Stream 0 is the compute
/// stream.
struct Program {
  std::vector<std::string> streams;
  std::vector<Buffer> buffers;
  std::vector<Operation> init;
  std::vector<Operation> step;

  const Buffer& buffer_of(const View& view) const { return buffers.at(view.buffer); }
};

/// The role of who stands at `at`: roles are numbered by mixed radix over `role_axes`, fastest first.
int role_of(const Layout& layout, AxisSet role_axes, const Coordinates& at);

/// The Programs of a job. All ranks that agree on `role_axes` run the same Program.
struct ProgramSet {
  Layout layout;
  std::vector<Group> groups;
  AxisSet role_axes;
  std::vector<Program> roles;

  int role_of(const Coordinates& at) const { return program::role_of(layout, role_axes, at); }
  /// The lowest rank of a role: its representative.
  int first_rank(int role) const;
};

/// "matmul qkv, layer 3, micro-batch 0, forward": for messages to people.
std::string title(const Operation& operation);

/// Equal for equal Programs, on every machine.
std::uint64_t hash(const ProgramSet& set);

}  // namespace harness::program
