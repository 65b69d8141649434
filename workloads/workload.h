#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "program/builder.h"
#include "program/memory.h"

namespace harness::workloads {

// Names from config and program that a step is written in.
using config::Model, config::Settings;
using program::Action, program::Axis, program::AxisSet, program::Buffer, program::BufferKind, program::Coordinates;
using program::DType, program::Group, program::GroupId, program::Label, program::Layout, program::Operation;
using program::OperationId, program::Peer, program::Phase, program::Program, program::ProgramBuilder;
using program::ProgramSet, program::StreamId, program::View;

/// Checks that one rank's step computed the right result. prepare() writes known numbers into the buffers, then a step
/// must run on all ranks, then check() throws an Error that names the operation, the element, its value and the
/// expected value.
class OutputCheck {
 public:
  virtual ~OutputCheck() = default;
  virtual void prepare(program::BufferAccess& memory) const = 0;
  virtual void check(program::BufferAccess& memory) const = 0;
};

/// Gradients that a rank holds after a step, for their norm.
struct GradientPart {
  View view = {};        // of the rank's Program, f32
  bool sharded = false;  // over the tensor axis; else every tensor rank holds the same
  int holders = 1;       // ranks that hold the same numbers, this one among them
  double scale = 1;      // factor in these numbers after the first step
};

/// The work of a step that repeats one operation, for its rate.
struct Rate {
  std::string operation;         // "all_reduce", "gemm", …
  std::int64_t repetitions = 0;  // per step; 0: the step does not repeat one operation
  double bytes = 0;       // of one: a collective's size as nccl-tests counts it; else bytes read and written, each once
  double bus_factor = 0;  // bus bandwidth / algorithm bandwidth (nccl-tests); 0: not a collective
  /// Element count as in nccl-tests, the one that NCCL's call takes: all elements for an all-reduce and send_recv, a
  /// rank's part for the others. 0: not a collective.
  std::int64_t count = 0;
};

/// Shares of the work in a step's Programs that is spent on tokens rather than padding.
struct Filling {
  double tokens = 1;     // tokens per position
  double attention = 1;  // of the FLOP of attention that the Programs count
};

/// A kind of step: a training step (gpt), or one operation repeated on the stream that it has in a training step. A
/// StepFrame begins and ends either. Stateless; all functions are pure. A model may be empty if the workload does not
/// use it. To add a workload: docs/architecture.md.
class Workload {
 public:
  virtual ~Workload() = default;
  /// As in `workload: NAME`.
  virtual std::string_view name() const = 0;

  /// Returns why the settings are impossible on any number of ranks; "" if they are possible.
  virtual std::string why_impossible(const Model&, const Settings&) const { return ""; }
  /// Returns why they are impossible on this layout; called only if the former returns "".
  virtual std::string why_impossible_on(const Model&, const Settings&, const Layout&) const { return ""; }

  /// Returns the Programs of every role. The settings must be possible on the layout.
  virtual ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout) const = 0;
  /// Returns the folded step if folding it is worthwhile for a prediction, else nothing.
  virtual std::optional<program::FoldedStep> folded(const Model&, const Settings&, const Layout&) const {
    return std::nullopt;
  }
  /// Returns the source of the Program's inputs on the rank at these coordinates.
  virtual std::unique_ptr<program::InputSource> inputs(const Model&, const Settings&, const Layout&, const Coordinates&,
                                                       std::uint64_t /*seed*/) const {
    return std::make_unique<program::NoInputs>();
  }
  /// Returns nullptr if a step has nothing to check on its own. The Program is this rank's and must outlive the check.
  virtual std::unique_ptr<OutputCheck> output_check(const Settings&, const Layout&, const Coordinates&,
                                                    const Program&) const {
    return nullptr;
  }

  /// Returns the gradients that the rank at these coordinates holds after a step of its own Program; none if the step
  /// does not train.
  virtual std::vector<GradientPart> gradients(const Model&, const Settings&, const Layout&, const Coordinates&,
                                              const Program&) const {
    return {};
  }

  /// The work of one step, in the units of its rate; for a training step, tokens.
  virtual Rate rate(const Settings&, const Layout&) const { return {}; }
  virtual std::int64_t tokens_per_step(const Model&, const Settings&, const Layout&) const { return 0; }
  /// Averaged over many steps.
  virtual Filling filling(const Model&, const Settings&, const Layout&) const { return {}; }
  /// Per data-parallel replica and step; 0 if there are none.
  virtual std::int64_t micro_batches(const Settings&, const Layout&) const { return 0; }
  /// Describes how a step's FLOPs are counted.
  virtual std::string flop_formula(const Model& model) const;

  /// Returns, as text, the values that `from_model` stands for in a sweep of this workload's size: those of a training
  /// step. If it has none, throws Error that says what the step has instead.
  virtual std::vector<std::string> values_from_model(const ProgramSet& training_step, const Settings& settings) const;
  /// Returns the parts of a training step that are the operation in the settings, each once, in the order of the step:
  /// "qkv, forward". Empty for a training step, and if the step has no such operation.
  virtual std::vector<std::string> uses_in_model(const ProgramSet& /*training_step*/, const Settings&) const {
    return {};
  }
};

/// All workloads, in the order of workload_names (config/settings.h).
std::span<const Workload* const> workloads();
const Workload& workload_of(const Settings& settings);
/// The training step.
const Workload& gpt_workload();

/// Builds the Programs of the workload that the settings name.
ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout);

/// Returns the whole buffer of that name; an absent view if there is none.
View find_buffer(const Program& program, std::string_view name);

// ---- the frame that the steps of all workloads share ----------------------------------------------------------------

/// Streams of a step, in order. Every communicator is used on one of them only; an operation runs on the stream that it
/// has in a training step.
enum : StreamId {
  compute_stream,
  tensor_stream,
  data_stream,
  pipeline_stream,
  optimizer_stream,
  world_stream,
  gather_stream,  // in steps that gather weights
  across_stream   // in those of them whose parts have copies on other nodes
};
ProgramBuilder step_builder(bool gathers = false, bool across_nodes = false);

/// Name of the ring that holds one number per step, [loss_ring] f32: the mean loss of gpt, 1 for workloads that train
/// nothing. It is read after the steps of a block.
inline constexpr const char* losses_buffer = "losses";
inline constexpr std::int64_t loss_ring = 4096;
/// Number of steps that updated the weights, [1] i32, in Programs that may skip an update.
inline constexpr const char* updates_buffer = "updates";

/// Begins and ends a step: every rank contributes its share of one number, and the closing all-reduce over the group
/// `world`, after everything else, sums the shares to the number that is recorded.
class StepFrame {
 public:
  /// Emits init operations. `what` names the number: "loss".
  StepFrame(ProgramBuilder& builder, GroupId world, const char* what);
  void begin_step();
  /// Sets this rank's share, to which the step may add. The compute stream starts with this, once `after` is done.
  void set_share(double share, const std::vector<OperationId>& after = {});
  void end_step();

  View value() const { return value_; }      // [1] f32, in the step
  View counter() const { return counter_; }  // [1] i32: finished steps

 private:
  ProgramBuilder& b_;
  GroupId world_;
  const char* what_;
  View counter_, ring_, value_;
};

}  // namespace harness::workloads
