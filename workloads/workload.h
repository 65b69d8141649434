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

// The words of a Program and of its settings that a step is written in.
using config::Model, config::Settings;
using program::Action, program::Axis, program::AxisSet, program::Buffer, program::BufferKind, program::Coordinates;
using program::DType, program::Group, program::GroupId, program::Label, program::Layout, program::Operation;
using program::OperationId, program::Peer, program::Phase, program::Program, program::ProgramBuilder;
using program::ProgramSet, program::StreamId, program::View;

/// Whether one rank's step computed what it must. prepare() puts known numbers into the buffers, then a step must run
/// on all ranks, then check() throws an Error that names operation, element, what it is and what it should be.
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
  double scale = 1;      // a factor that the numbers have after the first step
};

/// The work of a step that repeats one operation, for its rate.
struct Rate {
  std::string operation;         // "all_reduce", "gemm", …
  std::int64_t repetitions = 0;  // in a step; 0: a step is not one operation again and again
  double bytes = 0;       // of one: a collective's size as nccl-tests counts it; else what is read and written once
  double bus_factor = 0;  // bus bandwidth / algorithm bandwidth (nccl-tests); 0: no collective
  /// Elements as nccl-tests counts them, which is what NCCL's call takes: of an all-reduce and of send_recv all, of the
  /// others a rank's part. 0: no collective.
  std::int64_t count = 0;
};

/// The shares of what a step's Programs compute that are about tokens, and not about padding.
struct Filling {
  double tokens = 1;     // tokens per position
  double attention = 1;  // of the FLOP of attention that the Programs count
};

/// A kind of step: a training step (gpt), or one operation again and again on the stream that a training step has it
/// on. Either way a StepFrame begins and ends it. Stateless; all functions are pure. A model, where
/// the workload has no use for one, may be empty. To add a workload: docs/architecture.md.
class Workload {
 public:
  virtual ~Workload() = default;
  /// As in `workload: NAME`.
  virtual std::string_view name() const = 0;

  /// Why the settings are impossible on any number of ranks, for a person; "" if they are possible.
  virtual std::string why_impossible(const Model&, const Settings&) const { return ""; }
  /// Why they are impossible on this layout; asked once the former is "".
  virtual std::string why_impossible_on(const Model&, const Settings&, const Layout&) const { return ""; }

  /// The Programs of every role. The settings must be possible on the layout.
  virtual ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout) const = 0;
  /// The Programs of a step that is worth folding for a prediction; nothing for any other step.
  virtual std::optional<program::FoldedStep> folded(const Model&, const Settings&, const Layout&) const {
    return std::nullopt;
  }
  /// Fills the Program's inputs on the rank at these coordinates.
  virtual std::unique_ptr<program::InputSource> inputs(const Model&, const Settings&, const Layout&, const Coordinates&,
                                                       std::uint64_t /*seed*/) const {
    return std::make_unique<program::NoInputs>();
  }
  /// nullptr where a step has nothing that could be checked alone. The Program is this rank's and must outlive it.
  virtual std::unique_ptr<OutputCheck> output_check(const Settings&, const Layout&, const Coordinates&,
                                                    const Program&) const {
    return nullptr;
  }

  /// The gradients that the rank at these coordinates holds after a step of its own Program; none where a step does not
  /// train.
  virtual std::vector<GradientPart> gradients(const Model&, const Settings&, const Layout&, const Coordinates&,
                                              const Program&) const {
    return {};
  }

  /// The work of one step, in the units of its rate; for a training step, tokens.
  virtual Rate rate(const Settings&, const Layout&) const { return {}; }
  virtual std::int64_t tokens_per_step(const Model&, const Settings&, const Layout&) const { return 0; }
  /// In the mean over many steps.
  virtual Filling filling(const Model&, const Settings&, const Layout&) const { return {}; }
  /// Per data-parallel replica and step; 0 where there are none.
  virtual std::int64_t micro_batches(const Settings&, const Layout&) const { return 0; }
  /// How a step's FLOPs are counted, for a person.
  virtual std::string flop_formula(const Model& model) const;

  /// The values that `from_model` stands for in a sweep of this workload's size: those that a training step has, as
  /// text. Throws Error, which says what the step has instead, if there are none.
  virtual std::vector<std::string> values_from_model(const ProgramSet& training_step, const Settings& settings) const;
  /// The parts of a training step that are the operation that the settings describe, each once, in the order of the
  /// step: "qkv, forward". Of a training step, and where it has no such operation: nothing.
  virtual std::vector<std::string> uses_in_model(const ProgramSet& /*training_step*/, const Settings&) const {
    return {};
  }
};

/// All workloads, in the order of workload_names (config/settings.h).
std::span<const Workload* const> workloads();
const Workload& workload_of(const Settings& settings);
/// The training step.
const Workload& gpt_workload();

/// The Programs of the workload that the settings name.
ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout);

/// The whole buffer of that name; absent if there is none.
View find_buffer(const Program& program, std::string_view name);

// ---- the frame that the steps of all workloads share ----------------------------------------------------------------

/// The streams of a step, in order. Every communicator is used on one of them only; operations run on the one that they
/// have in a training step.
enum : StreamId {
  compute_stream,
  tensor_stream,
  data_stream,
  pipeline_stream,
  optimizer_stream,
  world_stream,
  gather_stream,  // of steps that gather weights
  across_stream   // and of those among them whose parts have copies on other nodes
};
ProgramBuilder step_builder(bool gathers = false, bool across_nodes = false);

/// The ring in which a Program keeps one number per step, [loss_ring] f32: the mean loss of gpt, 1 of the workloads
/// that train nothing. Whoever runs a block reads it after the steps.
inline constexpr const char* losses_buffer = "losses";
inline constexpr std::int64_t loss_ring = 4096;
/// How many steps have updated the weights, [1] i32, in Programs that may skip an update.
inline constexpr const char* updates_buffer = "updates";

/// How a step begins and ends: every rank brings its share of one number, and the closing all-reduce over the group
/// `world`, after everything else, makes the number of it that is recorded.
class StepFrame {
 public:
  /// Emits init operations. `what` names the number: "loss".
  StepFrame(ProgramBuilder& builder, GroupId world, const char* what);
  void begin_step();
  /// Sets the number of this rank, to which the step may add. The compute stream begins with it, once `after` is done.
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
