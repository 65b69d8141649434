#include "program/program.h"

#include <utility>

namespace harness::program {
namespace {

// Lowers one operation list. Each old operation maps to the last of the operations that replace it, for which later
// ones wait; its own waits go to the first of them.
class Lowering {
 public:
  Lowering(Program& program, FusedSet declared) : program_(program), declared_(declared) {}

  std::vector<Operation> run(std::vector<Operation> list) {
    out_.clear();
    out_.reserve(list.size());
    last_of_.clear();
    last_of_.reserve(list.size());
    for (Operation& op : list) {
      original_ = &op;
      for (OperationId& w : op.waits) w = last_of_[w];
      std::visit([&](const auto& action) { replace(action); }, op.action);
      last_of_.push_back(static_cast<OperationId>(out_.size()) - 1);
    }
    return std::move(out_);
  }

 private:
  // The first part takes the waits.
  void emit(const Action& action) {
    out_.push_back(
        {action, original_->stream, std::exchange(original_->waits, {}), original_->fused_group, original_->label});
  }

  void replace(const auto& /*kept*/) { out_.push_back(std::move(*original_)); }

  void replace(const Matmul& whole) {
    Matmul m = whole;
    if (m.bias_gradient.present() && !has(declared_, Fused::matmul_bias_gradient)) {
      // op(a) [m, k] = a^T: its row sums are the column sums of the stored a [k, m].
      emit(ColumnSum{m.a, m.bias_gradient, m.k, m.m, m.accumulate});
      m.bias_gradient = {};
    }
    if (m.add.present() && !has(declared_, Fused::matmul_add)) {
      m.bias = m.add = {};
      emit(m);
      return emit(ResidualAdd{m.out, whole.bias, whole.add, m.out, m.m, m.n});
    }
    // The bias precedes the epilogue, so a separate BiasAdd makes the epilogue separate, too.
    const bool bias = m.bias.present() && !has(declared_, Fused::matmul_bias);
    const bool gelu = m.epilogue == Epilogue::gelu && (bias || !has(declared_, Fused::matmul_gelu));
    const bool gelu_backward =
        m.epilogue == Epilogue::gelu_backward && (bias || !has(declared_, Fused::matmul_gelu_backward));
    const View out = m.out, aux = m.aux, bias_view = m.bias;
    if (gelu) m.out = aux;
    if (gelu || gelu_backward) {
      m.aux = {};
      m.epilogue = Epilogue::none;
    }
    if (bias) m.bias = {};
    emit(m);
    if (bias) emit(BiasAdd{bias_view, m.out, m.m, m.n});
    if (gelu) emit(Gelu{aux, out});
    if (gelu_backward) emit(GeluBackward{aux, out});
  }

  void replace(const Quantise& whole) {
    Quantise q = whole;
    if (q.bias_gradient.present() && !has(declared_, Fused::matmul_bias_gradient)) {
      emit(ColumnSum{q.in, q.bias_gradient, q.rows, q.width, q.accumulate});
      q.bias_gradient = {};
    }
    emit(q);
  }

  void replace(const LayerNorm& whole) { replace_norm(whole); }
  void replace(const RmsNorm& whole) { replace_norm(whole); }
  void replace(const LayerNormBackward& whole) { replace_norm_backward(whole); }
  void replace(const RmsNormBackward& whole) { replace_norm_backward(whole); }

  void replace_norm(const auto& whole) {
    if (!whole.residual.present() || has(declared_, Fused::norm_residual)) return emit(whole);
    auto norm = whole;
    norm.in = whole.sum;
    norm.bias = norm.residual = norm.sum = {};
    emit(ResidualAdd{whole.in, whole.bias, whole.residual, whole.sum, whole.rows, whole.width});
    emit(norm);
  }

  void replace_norm_backward(const auto& whole) {
    auto norm = whole;
    const bool residual = whole.dresidual.present() && !has(declared_, Fused::norm_dresidual);
    // The bias gradient sums din after the residual's gradient is added.
    const bool bias = whole.dbias.present() && (residual || !has(declared_, Fused::norm_bias_gradient));
    if (residual) norm.dresidual = {};
    if (bias) norm.dbias = {};
    emit(norm);
    if (residual) emit(ResidualAdd{whole.din, {}, whole.dresidual, whole.din, whole.rows, whole.width});
    if (bias) emit(ColumnSum{whole.din, whole.dbias, whole.rows, whole.width, whole.accumulate});
  }

  void replace(const CrossEntropy& c) {
    if (has(declared_, Fused::cross_entropy)) return emit(c);
    const auto row_values = [&](const char* name) {
      program_.buffers.push_back({name, DType::f32, c.rows, BufferKind::transient});
      return View{static_cast<BufferId>(program_.buffers.size()) - 1, 0, c.rows};
    };
    const View maximum = row_values("cross_entropy_maximum");
    const View target = row_values("cross_entropy_target");
    const View sum = row_values("cross_entropy_sum");
    const Shard whole{Axis::tensor, c.vocab};  // reached only if one rank holds the whole vocabulary
    emit(CrossEntropyMaximum{c.logits, maximum, c.rows, c.vocab});
    emit(CrossEntropySums{c.logits, c.labels, maximum, target, sum, c.rows, c.vocab, whole});
    emit(CrossEntropyGradient{c.logits, c.labels, maximum, target, sum, c.loss, c.rows, c.vocab, whole, c.loss_scale,
                              c.gradient_scale, c.scale, c.gradient_factor});
  }

  Program& program_;
  FusedSet declared_;
  Operation* original_ = nullptr;
  std::vector<Operation> out_;
  std::vector<OperationId> last_of_;
};

}  // namespace

Program lower(Program program, FusedSet declared) {
  if (declared == all_fused) return program;  // there is nothing to replace
  Lowering lowering(program, declared);
  program.init = lowering.run(std::move(program.init));
  program.step = lowering.run(std::move(program.step));
  return program;
}

ProgramSet lower(ProgramSet set, FusedSet declared) {
  for (Program& role : set.roles) role = lower(std::move(role), declared);
  return set;
}

}  // namespace harness::program
