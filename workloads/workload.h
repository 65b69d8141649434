#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "config/settings.h"
#include "plan/plan.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/lower.h"
#include "program/program.h"
#include "workloads/operations.h"

namespace harness {

/// The Programs of every role of the workload that the settings name: a GPT training step (workloads/gpt.h), which
/// alone looks at the model, or one operation (workloads/operations.h). Pure.
ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout);
/// The Program of one role alone: what a worker builds.
Program build_role(const Model& model, const Settings& settings, const Layout& layout, int role);

/// Fills the input buffers of one rank before a step. Values depend on (seed, step, global sample number) alone, so
/// every layout trains on the same batch.
class InputSource {
 public:
  virtual ~InputSource() = default;
  /// `buffer` is the name of an input buffer; `to` its whole extent.
  virtual void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const = 0;
};
std::unique_ptr<InputSource> make_inputs(const Model& model, const Settings& settings, const Layout& layout,
                                         const Coordinates& at, std::uint64_t seed);

/// nullptr where a step has nothing that could be checked alone (gpt: its loss is).
std::unique_ptr<OutputCheck> make_output_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                               const Program& program);

/// What is known of a case before it runs. FLOPs are sums over all ranks for one step.
struct Survey {
  std::uint64_t program_hash = 0;
  std::int64_t roles = 0;
  double tokens_per_step = 0;  // gpt
  Point point;                 // the others
  Flop flop;
  double hardware_flop = 0;     // with recomputation, attention causal
  std::vector<Count> counts;    // per role, of one step of one rank
  std::vector<Arena> arenas;    // per role, after lowering
  std::int64_t peak_bytes = 0;  // of the largest role
  int peak_role = 0;
};
/// Builds, verifies, counts and plans memory. Throws Error naming rank and operation if verification fails.
Survey survey(const Model& model, const Case& the_case, FusedSet declared);

}  // namespace harness
