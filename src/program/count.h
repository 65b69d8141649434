#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "program/program.h"

namespace harness::program {

/// Floating-point operations of one matrix-like action: 2 per multiply-add. Elementwise work is not counted, as in
/// every MFU formula (docs/method.md).
struct Flop {
  double model = 0;      // causal attention at half, as the mathematics requires
  double noncausal = 0;  // attention over the full square: the convention of older tables
};
Flop flop_of(const Action& action);

/// Bytes that an action reads and writes if every view moves through memory once.
double bytes_touched(const Program& program, const Action& action);

/// As bytes_touched(), but counts only the rows of embedding tables that a step looks up: the bytes that must move.
double needed_bytes(const Program& program, const Action& action);

/// Returns the work of a computation: its FLOP if it has any, with causal attention at half, else its needed bytes.
double work_of(const Program& program, const Action& action);

/// The properties that both directions of attention share.
struct AnyAttention {
  AttentionShape shape;
  bool backward = false;
  bool unfused = false;  // keeps its probabilities in memory
  double unseen = 0;
};
/// Returns nothing for any other action.
std::optional<AnyAttention> attention_of(const Action& action);

/// Whether a product of a training step is a weight gradient. With quantised factors, only weight gradients are f32;
/// without, only they have a transposed first factor.
bool is_weight_gradient(const Program& program, const Matmul& product);

/// Returns the name of a communication's group, or the axis and offset of its peer ("pipeline+1").
std::string destination(const ProgramSet& set, const Action& action);
/// The size of a communication's buffer, as the caller passes it (nccl-tests' "size").
double message_bytes(const Program& program, const Action& action);

/// Messages of one kind on one communicator, as seen by one rank.
struct Traffic {
  std::int64_t messages = 0;
  double bytes = 0;       // of buffers, as the caller passes them (nccl-tests' "size")
  double sent_bytes = 0;  // by this rank, as sent_bytes() counts
};

/// Messages and operations of a rank of this role in one step.
struct Count {
  std::map<std::pair<std::string, std::string>, Traffic> traffic;  // (group or "axis+offset", operation name)
  std::set<std::string_view> flop_kinds;                           // names of the operations that have FLOP
  std::int64_t operations = 0;
};
/// Returns how many operations one list entry represents.
using Times = std::function<int(const Operation&)>;
inline int once(const Operation& /*operation*/) {
  return 1;
}
Count count(const ProgramSet& set, const Program& program, const Times& times = once);

using Which = std::function<bool(const Operation&)>;
inline bool is_done_once(const Operation& operation) {
  return !operation.label.recomputed;
}
inline bool is_recomputed(const Operation& operation) {
  return operation.label.recomputed;
}
/// Sums the FLOP of the operations for which `counts` is true, over all ranks of the job.
Flop total_flop(const ProgramSet& set, const Times& times = once, const Which& counts = is_done_once);

/// The peak rates of one device; 0: not known.
struct DeviceRates {
  double flops = 0;  // FLOP/s, dense, in the precision of the products
  double memory_bytes_per_s = 0;
};

/// The limit of a computation.
enum class Bound : std::uint8_t { flop, memory };
const char* name_of(Bound bound);

/// Lower bound on the time of a computation on a device: its FLOP at the peak rate or its bytes at the memory
/// bandwidth, whichever takes longer (Williams, Waterman and Patterson, "Roofline", 2009). 0 if neither rate is known.
struct LeastTime {
  double flop_s = 0, memory_s = 0;
  double seconds() const { return flop_s > memory_s ? flop_s : memory_s; }
  Bound bound() const { return flop_s > 0 && flop_s >= memory_s ? Bound::flop : Bound::memory; }
};
LeastTime least_time(double flop, double bytes, const DeviceRates& rates);

}  // namespace harness::program
