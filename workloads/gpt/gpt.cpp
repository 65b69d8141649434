#include "workloads/gpt/gpt.h"

#include "workloads/gpt/buckets.h"
#include "workloads/gpt/schedule.h"
#include "workloads/gpt/stage.h"

namespace harness::gpt {
namespace {

/// The exchange with the neighbouring stages: a forward pass takes activations from the previous chunk of the model and
/// gives them to the next, a backward pass hands gradients the other way. The ends of the model have only one
/// neighbour.
class Neighbours {
 public:
  Neighbours(program::ProgramBuilder& builder, Stage& stage) : b_(builder), stage_(stage) {}

  /// What the pass works on; absent where no chunk sends it.
  program::View receive(const Pass& pass, std::int32_t fused_group) {
    const int from = forward(pass) ? -1 : +1;
    if (!exists(pass, from)) return {};
    const program::View v = stage_.activation(forward(pass) ? "received" : "received_gradient");
    b_.emit(workloads::pipeline_stream, program::Receive{{program::Axis::pipeline, from}, v}, label(pass), {},
            fused_group);
    return v;
  }
  void send(const Pass& pass, const program::View& v, std::int32_t fused_group) {
    const int to = forward(pass) ? +1 : -1;
    if (!exists(pass, to)) return;
    b_.emit(workloads::pipeline_stream, program::Send{{program::Axis::pipeline, to}, v}, label(pass), {}, fused_group);
  }

 private:
  static bool forward(const Pass& pass) { return pass.direction == Pass::Direction::forward; }
  bool exists(const Pass& pass, int offset) const {
    const Chunk& chunk = stage_.chunk(pass.chunk);
    return !(offset < 0 ? chunk.first : chunk.last);
  }
  static program::Label label(const Pass& pass) {
    if (forward(pass)) return {"activations", program::Phase::forward, pass.micro_batch};
    return {"gradients", program::Phase::backward, pass.micro_batch};
  }

  program::ProgramBuilder& b_;
  Stage& stage_;
};

// Emits the passes and what goes between the stages. Where a pass is followed by one in the other direction, what the
// first sends and what the second receives is an exchange with one neighbour: both start together, as in Megatron-LM.
void emit_passes(const std::vector<Pass>& passes, program::ProgramBuilder& builder, Stage& stage, Buckets& buckets) {
  Neighbours neighbours(builder, stage);
  const auto on_final = [&](ParameterId parameter) { buckets.complete(parameter); };
  program::View in = neighbours.receive(passes.front(), -1);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    const program::View out =
        pass.direction == Pass::Direction::forward ? stage.forward(pass, in) : stage.backward(pass, in, on_final);
    if (i + 1 == passes.size()) {
      neighbours.send(pass, out, -1);
      break;
    }
    const Pass& next = passes[i + 1];
    const std::int32_t exchange = next.direction != pass.direction ? builder.new_fused_group() : -1;
    neighbours.send(pass, out, exchange);
    in = neighbours.receive(next, exchange);
  }
}

}  // namespace

program::Program program(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
                         int pipeline_stage) {
  program::ProgramBuilder builder = workloads::step_builder();
  workloads::StepFrame frame(builder, world_group, "loss");
  Parameters parameters(builder, model, settings, layout, pipeline_stage);
  Stage stage(builder, parameters, frame, model, settings, layout, pipeline_stage);
  Buckets buckets(builder, parameters, frame, settings, layout);
  parameters.emit_init();
  frame.begin_step(0);
  parameters.begin_step();
  emit_passes(one_forward_one_backward(pipeline_stage, layout[program::Axis::pipeline], stage.dims().micro_batches),
              builder, stage, buckets);
  buckets.finish();
  frame.end_step();
  return builder.take();
}

program::ProgramSet programs(const config::Model& model, const config::Settings& settings,
                             const program::Layout& layout) {
  const int stages = layout[program::Axis::pipeline];
  program::ProgramSet set;
  set.layout = layout;
  set.groups = {{"tensor", program::AxisSet::of({program::Axis::tensor}), {}},
                {"data", program::AxisSet::of({program::Axis::data}), {}},
                {"embedding", program::AxisSet::of({program::Axis::pipeline}),
                 stages > 1 ? std::vector<int>{0, stages - 1} : std::vector<int>{0}},
                {"world", program::AxisSet::all(), {}}};
  set.role_axes = program::AxisSet::of({program::Axis::pipeline});
  for (int s = 0; s < stages; ++s) set.roles.push_back(program(model, settings, layout, s));
  return set;
}

}  // namespace harness::gpt
