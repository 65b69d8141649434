#include "workloads/gpt.h"

#include "workloads/gpt_buckets.h"
#include "workloads/gpt_stage.h"

namespace harness::gpt {
namespace {

/// The exchange with neighbouring stages. Messages that Megatron-LM's 1F1B starts together form one fused group.
class Neighbours {
 public:
  Neighbours(ProgramBuilder& builder, Stage& stage) : b_(builder), stage_(stage) {}

  View receive_forward(int mb) { return receive(mb, -1, "activations", Phase::forward, -1); }
  View receive_backward(int mb) { return receive(mb, +1, "gradients", Phase::backward, -1); }
  void send_forward(int mb, const View& v) { send(mb, v, +1, "activations", Phase::forward, -1); }
  void send_backward(int mb, const View& v) { send(mb, v, -1, "gradients", Phase::backward, -1); }
  View send_forward_receive_backward(int sent, const View& v, int received) {
    const auto group = b_.new_fused_group();
    send(sent, v, +1, "activations", Phase::forward, group);
    return receive(received, +1, "gradients", Phase::backward, group);
  }
  View send_backward_receive_forward(int sent, const View& v, int received) {
    const auto group = b_.new_fused_group();
    send(sent, v, -1, "gradients", Phase::backward, group);
    return receive(received, -1, "activations", Phase::forward, group);
  }

 private:
  bool none(int offset) const { return offset < 0 ? stage_.dims().first() : stage_.dims().last(); }
  View receive(int mb, int offset, const char* what, Phase phase, std::int32_t group) {
    if (none(offset)) return {};
    const View v = stage_.activation(offset < 0 ? "received" : "received_gradient");
    b_.emit(pipeline_stream, Receive{{Axis::pipeline, offset}, v}, {what, phase, mb}, {}, group);
    return v;
  }
  void send(int mb, const View& v, int offset, const char* what, Phase phase, std::int32_t group) {
    if (none(offset)) return;
    b_.emit(pipeline_stream, Send{{Axis::pipeline, offset}, v}, {what, phase, mb}, {}, group);
  }

  ProgramBuilder& b_;
  Stage& stage_;
};

// One forward, one backward (PipeDream-flush; Narayanan et al. 2021, section 2.2): stage p of P runs P - p - 1 forward
// passes ahead, then alternates, so that at most P - p micro-batches are in flight. With one stage this is plain
// gradient accumulation.
void emit_schedule(ProgramBuilder& builder, Stage& stage, Buckets& buckets) {
  const Dimensions& d = stage.dims();
  const int micro_batches = static_cast<int>(d.micro_batches);
  const int ahead = std::min(d.stages - d.stage - 1, micro_batches);
  Neighbours neighbours(builder, stage);
  const auto on_final = [&](const std::string& name) { buckets.complete(name); };

  for (int i = 0; i < ahead; ++i) {
    const View in = neighbours.receive_forward(i);
    neighbours.send_forward(i, stage.forward(i, in));
  }
  View in;
  if (ahead < micro_batches) in = neighbours.receive_forward(ahead);
  for (int i = ahead; i < micro_batches; ++i) {
    const int back = i - ahead;
    const View out = stage.forward(i, in);
    const View gradient = neighbours.send_forward_receive_backward(i, out, back);
    const View sent = stage.backward(back, gradient, on_final);
    if (i + 1 < micro_batches) {
      in = neighbours.send_backward_receive_forward(back, sent, i + 1);
    } else {
      neighbours.send_backward(back, sent);
    }
  }
  for (int back = micro_batches - ahead; back < micro_batches; ++back) {
    const View gradient = neighbours.receive_backward(back);
    neighbours.send_backward(back, stage.backward(back, gradient, on_final));
  }
}

}  // namespace

Program program(const Model& model, const Settings& settings, const Layout& layout, int pipeline_stage) {
  ProgramBuilder builder({"compute", "tensor", "data", "pipeline", "world"});
  Stage stage(builder, model, settings, layout, pipeline_stage);
  stage.emit_init();
  builder.begin_step();
  stage.begin_step();
  Buckets buckets(builder, stage, settings);
  emit_schedule(builder, stage, buckets);
  buckets.finish();
  stage.finish_step({});
  return builder.take();
}

ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout) {
  const int stages = layout[Axis::pipeline];
  ProgramSet set;
  set.layout = layout;
  set.groups = {
      {"tensor", AxisSet::of({Axis::tensor}), {}},
      {"data", AxisSet::of({Axis::data}), {}},
      {"embedding", AxisSet::of({Axis::pipeline}), stages > 1 ? std::vector<int>{0, stages - 1} : std::vector<int>{0}},
      {"world", AxisSet::all(), {}}};
  set.role_axes = AxisSet::of({Axis::pipeline});
  for (int s = 0; s < stages; ++s) set.roles.push_back(program(model, settings, layout, s));
  return set;
}

}  // namespace harness::gpt
