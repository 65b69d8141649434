#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

/// Work of one role: `init` once, then `step` repeatedly, both over the same buffers and streams. The order of
/// operations respects every dependency (a wait names an earlier operation), and a rank starts its communications in
/// that order. The whole list completes before the next step's begins. Stream 0 is the compute stream.
struct Program {
  std::vector<std::string> streams;
  std::vector<Buffer> buffers;
  std::vector<Operation> init;
  std::vector<Operation> step;

  const Buffer& buffer_of(const View& view) const { return buffers.at(view.buffer); }
};

/// Returns the role of the rank at `at`: roles are numbered by mixed radix over `role_axes`, fastest first.
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

/// Describes an operation in messages: "matmul qkv, layer 3, micro-batch 0, forward".
std::string title(const Operation& operation);

/// Returns the same value for equal Programs, on every machine.
std::uint64_t hash(const ProgramSet& set);

/// Label::what of a computation that replaces a whole pass of a micro-batch through a chunk of its stage: phase gives
/// the direction, layer the number of the chunk. Its action reads the input of the pass and writes its result.
inline constexpr std::string_view folded_pass = "folded pass";
/// Replaces the part of a pass that needs no input, recomputation; stands right before the rest of the pass.
inline constexpr std::string_view folded_beginning = "beginning of a folded pass";
/// Marks the end of a pass on a stream where folded passes have no operation, so that later operations that are written
/// out wait for it there. It takes no time.
inline constexpr std::string_view folded_end = "end of a folded pass";
inline bool is_folded(const Operation& op) {
  return op.label.what == folded_pass || op.label.what == folded_beginning || op.label.what == folded_end;
}

/// From micro-batch `from` on, a role's passes for `every` micro-batches repeat those of the previous `every`, until
/// its forward passes end. In a step of `enough` micro-batches, the first of these run their backward passes before
/// that.
struct Repetition {
  int role = 0;
  int from = 0, every = 1, enough = 0;
};

/// A long training step with its repeated passes folded. A micro-batch repeats the one before it, so a prediction needs
/// each pass of a stage written out once.
struct FoldedStep {
  int micro_batches = 0;  // 3 or more
  /// The step. The passes of the first and the last micro-batch are written out; every other pass is one operation.
  ProgramSet set;
  /// This step with three micro-batches, all written out. Every chunk runs all its forward passes in a row, then all
  /// its backward passes. Micro-batch 1 represents all but the first and the last micro-batch of the step.
  ProgramSet sample;
  /// Among the roles with equal passes, the one with the most of them in flight, which needs the most memory.
  std::vector<Repetition> fullest;
  /// Returns the Program of one of these roles with the passes of all `micro_batches` written out.
  std::function<Program(int role, int micro_batches)> written_out;
};

// ---- finer operations -----------------------------------------------------------------------------------------------

/// Fused forms that a backend may declare, one bit each; lower() replaces the others by finer operations.
enum Fused : std::uint32_t {
  matmul_bias = 1,           // bias in a Matmul            else Matmul, BiasAdd
  matmul_gelu = 2,           // Epilogue::gelu              else Matmul into aux, Gelu
  matmul_gelu_backward = 4,  // Epilogue::gelu_backward     else Matmul, GeluBackward
  matmul_bias_gradient = 8,  // bias_gradient in a Matmul   else ColumnSum, Matmul; also of a Quantise
  cross_entropy = 16,        // CrossEntropy                else its three parts
  matmul_add = 32,           // add in a Matmul             else Matmul, ResidualAdd (which takes the bias along)
  norm_residual = 64,        // residual in a norm          else ResidualAdd into sum, the norm
  norm_dresidual = 128,      // dresidual in its backward   else its backward, ResidualAdd, ColumnSum for dbias
  norm_bias_gradient = 256,  // dbias in its backward       else its backward, ColumnSum
};
using FusedSet = std::uint32_t;
inline constexpr bool has(FusedSet set, Fused f) {
  return (set & f) != 0;
}
inline constexpr FusedSet all_fused = 511;

/// Rewrites a Program in the finer operations that a backend with `declared` fused forms understands. FLOPs,
/// communication and verification are unchanged.
Program lower(Program program, FusedSet declared);
ProgramSet lower(ProgramSet set, FusedSet declared);

// ---- what is wrong with Programs ------------------------------------------------------------------------------------

/// Checks the Programs of a job; an empty result means that the step runs to its end on every machine that keeps
/// streams in order. Each problem names the lowest rank concerned and the operation. Reports views outside their
/// buffer, wrong element types or shapes, waits that do not point backwards, reads of unwritten memory, accesses to the
/// same memory in no defined order, results of a training step that are not read before they are overwritten or the
/// step ends, and communication that does not match (the labels at the two ends of a message included) or deadlocks.
/// The deadlock check assumes the worst case: a rank starts its communications one after the other in list order, a
/// send waits for its receive, a collective for all its members, and operations of one fused group start together.
///
/// Checks a role's Program once, whatever the number of ranks. Returns at most `limit` problems.
std::vector<std::string> verify(const ProgramSet& set, std::size_t limit = 20);

// Parts of verify() in files of their own: match.cpp and shapes.cpp.

/// Runs the communications of one list (init or step) of every role against each other, each role's in list order,
/// each waiting for all its partners, and reports what does not match or never ends.
///
/// Why roles suffice: all ranks of a role run the same list, so there is an execution in which they move in lockstep.
/// With rendezvous semantics the outcome (ends or not) does not depend on the order in which enabled communications
/// happen, so this execution stands for all. In it, a rank's partner of its own role is at the same place as the rank.
void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<std::string>& problems);

/// Returns "" if the views of an action have the sizes and element types that its parameters require on this rank, else
/// what is wrong. Views must lie inside their buffers.
std::string check_shapes(const ProgramSet& set, const Program& program, int rank, const Action& action);

}  // namespace harness::program
