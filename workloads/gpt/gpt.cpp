#include "workloads/gpt/gpt.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/gpt/buckets.h"
#include "workloads/gpt/gathers.h"
#include "workloads/gpt/schedule.h"
#include "workloads/gpt/stage.h"

namespace harness::gpt {
namespace {

/// Messages that a stage exchanges with its neighbours. A forward pass takes activations from the model's previous
/// chunk and gives them to the next one, a backward pass passes gradients the other way.
///
/// At both ends, a message belongs to the tick at which its sender ends the pass (timetable()). All ranks start their
/// messages in the order of these ticks, those of one tick together. This excludes deadlock: among the pending
/// messages, one with the lowest tick is first at both of its ends, even if a send waits for its receive and the
/// messages of a rank wait for each other. A stage ends one pass per tick, so two messages of a tick between the same
/// ranks go in opposite directions.
class Messages {
 public:
  Messages(ProgramBuilder& builder, Stage& stage, const std::vector<TimedPass>& passes) : b_(builder), stage_(stage) {
    for (const TimedPass& timed : passes) {
      if (timed.arrives >= 0) to_come_[timed.arrives].push_back(timed.pass);
    }
  }

  /// Receives everything sent at ticks before this one.
  void receive_before(int tick) {
    while (!to_come_.empty() && to_come_.begin()->first < tick) exchange(to_come_.begin()->first, {}, {});
  }
  /// Returns the input of the pass; absent if no chunk sends it.
  View take(const Pass& pass) {
    const auto node = arrived_.extract(pass);
    return node ? node.mapped() : View{};
  }
  /// Sends the result of a pass that ends at this tick, if there is one, and receives what others send at this tick.
  void exchange(int tick, const Pass& pass, const View& result) {
    const auto node = to_come_.extract(tick);
    const std::vector<Pass> inputs = node ? node.mapped() : std::vector<Pass>{};
    const bool sends = result.present();
    const std::int32_t together = inputs.size() + (sends ? 1 : 0) > 1 ? b_.new_fused_group() : -1;
    if (sends) {
      const Peer to{Axis::pipeline, pass.forward() ? +1 : -1};
      b_.emit(pipeline_stream, program::Send{to, result}, label(pass, border(pass, true)), {}, together);
    }
    for (const Pass& input : inputs) {
      const Peer from{Axis::pipeline, input.forward() ? -1 : +1};
      const View data = stage_.activation(input.forward() ? "received" : "received_gradient");
      b_.emit(pipeline_stream, program::Receive{from, data}, label(input, border(input, false)), {}, together);
      arrived_[input] = data;
    }
  }

 private:
  // Returns the border at which a pass begins, or the one at which it ends, as the layer that follows it.
  int border(const Pass& pass, bool ends) const {
    const Chunk& chunk = stage_.chunk(pass.chunk);
    return pass.forward() == ends ? chunk.end() : chunk.first_layer;
  }
  static Label label(const Pass& pass, int layer) {
    return {pass.forward() ? "activations" : "gradients", pass.phase, pass.micro_batch, layer};
  }

  ProgramBuilder& b_;
  Stage& stage_;
  std::map<int, std::vector<Pass>> to_come_;  // passes by the tick at which their input is sent
  std::map<Pass, View> arrived_;
};

// Folds the passes of all `folded_micro_batches` except the first and the last.
Program program(const Model& model, const Settings& settings, const Layout& layout, int pipeline_stage,
                const std::vector<TimedPass>& passes, int folded_micro_batches = 0) {
  ProgramBuilder builder = step_builder(shards_of(settings, layout) > 1, shards_are_of_node(settings, layout));
  StepFrame frame(builder, world_group, "loss");
  LossScaler scaler(builder, settings);
  Parameters parameters(builder, model, settings, layout, pipeline_stage);
  Gathers gathers(builder, parameters, settings, chunks_of(model, settings, layout, pipeline_stage), passes);
  Stage stage(builder, parameters, gathers, scaler, frame, model, settings, layout, pipeline_stage);
  Buckets buckets(builder, parameters, scaler, frame, settings, layout);
  parameters.emit_init();
  frame.begin_step();
  frame.set_share(0, gathers.begin_step());
  parameters.begin_step();
  Messages messages(builder, stage, passes);
  const auto run = [&](const Pass& pass) -> View {
    const View in = messages.take(pass);
    if (pass.micro_batch > 0 && pass.micro_batch + 1 < folded_micro_batches) return stage.folded(pass, in);
    if (pass.forward()) return stage.forward(pass, in);
    parameters.begin_backward();
    const View result =
        stage.backward(pass, in, [&](ParameterId parameter) { buckets.complete(parameter, pass.last); });
    buckets.end_backward(pass.last);
    return result;
  };
  for (const TimedPass& timed : passes) {
    messages.receive_before(timed.end);
    messages.exchange(timed.end, timed.pass, run(timed.pass));
  }
  buckets.finish();
  frame.end_step();
  return builder.take();
}

// Returns the set without its roles.
ProgramSet frame_of(const Model& model, const Settings& settings, const Layout& layout) {
  const int stages = layout[Axis::pipeline];
  const bool of_node = shards_are_of_node(settings, layout);
  const auto replicas = of_node ? program::Replicas::of_node : program::Replicas::all;
  const AxisSet data = AxisSet::of({Axis::data});
  ProgramSet set;
  set.layout = layout;
  set.groups = {{"tensor", AxisSet::of({Axis::tensor}), {}},
                {"data", data, {}, replicas},
                {"embedding", AxisSet::of({Axis::pipeline}),
                 stages > 1 && model.tied_embeddings ? std::vector<int>{0, stages - 1} : std::vector<int>{0}},
                {"world", AxisSet::all(), {}}};
  if (shards_of(settings, layout) > 1) set.groups.push_back({"gather", data, {}, replicas});
  if (of_node) set.groups.push_back({"nodes", data, {}, program::Replicas::across_nodes});
  set.role_axes = AxisSet::of({Axis::pipeline});
  return set;
}

Pipeline pipeline_of(const Model& model, const Settings& settings, const Layout& layout) {
  return {layout[Axis::pipeline], settings.chunks_of_stage(), dimensions(model, settings, layout).micro_batches};
}

}  // namespace

ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout) {
  ProgramSet set = frame_of(model, settings, layout);
  const auto passes = timetable(settings.pipeline_schedule, pipeline_of(model, settings, layout));
  for (int s = 0; std::cmp_less(s, passes.size()); ++s)
    set.roles.push_back(program(model, settings, layout, s, passes[s]));
  return set;
}

program::FoldedStep folded(const Model& model, const Settings& settings, const Layout& layout) {
  const Pipeline whole = pipeline_of(model, settings, layout);
  Pipeline short_one = whole;
  short_one.micro_batches = 3;
  program::FoldedStep step;
  step.micro_batches = whole.micro_batches;
  step.set = step.sample = frame_of(model, settings, layout);
  step.written_out = [=](int stage, int micro_batches) {
    const Pipeline some{whole.stages, whole.chunks, micro_batches};
    return program(model, settings, layout, stage, timetable(settings.pipeline_schedule, some)[stage]);
  };
  const auto all = timetable(settings.pipeline_schedule, whole);
  const auto sample = timetable(short_one, std::vector<Passes>(whole.stages, chunk_by_chunk(short_one)));
  std::set<std::vector<std::tuple<int, bool, bool>>> shapes;  // of stages: the first of a shape has the most in flight
  for (int s = 0; s < whole.stages; ++s) {
    step.set.roles.push_back(program(model, settings, layout, s, all[s], whole.micro_batches));
    step.sample.roles.push_back(program(model, settings, layout, s, sample[s]));
    std::vector<std::tuple<int, bool, bool>> shape;
    for (const Chunk& c : chunks_of(model, settings, layout, s)) shape.emplace_back(c.layers, c.first, c.last);
    if (shapes.insert(std::move(shape)).second)
      step.fullest.push_back(repetition_of(settings.pipeline_schedule, whole, s));
  }
  return step;
}

}  // namespace harness::gpt
