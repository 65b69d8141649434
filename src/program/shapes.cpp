#include "program/verify.h"

#include <initializer_list>
#include <limits>

#include "base/error.h"
#include "base/floats.h"

namespace harness::program {
namespace {

class Shapes {
 public:
  Shapes(const ProgramSet& set, const Program& program, int rank) : set_(set), program_(program), rank_(rank) {}
  std::string wrong;

  void of(const Fill&) {}
  void of(const Initialize& a) {
    is(a.out, a.outer * a.part * a.inner, DType::f32, "out");
    if (a.part * (set_.layout[a.axis]) != a.full && a.part != a.full) {
      note(fmt::format("{} parts of {} do not make {}", set_.layout[a.axis], a.part, a.full));
    }
  }
  void of(const Convert& a) { size(a.out, a.in.count, "out"); }
  void of(const Record& a) {
    size(a.value, 1, "value");
    is(a.counter, 1, DType::i32, "counter");
    type(a.value, {DType::f32}, "value");
    type(a.ring, {DType::f32}, "ring");
  }
  void of(const Embedding& a) { embedding(a, a.out, a.words, a.positions, "out"); }
  void of(const EmbeddingBackward& a) {
    embedding(a, a.dout, a.dwords, a.dpositions, "dout");
    type(a.dwords, {DType::f32}, "dwords");
    type(a.dpositions, {DType::f32}, "dpositions");
  }
  void of(const ResidualAdd& a) {
    for (const View& v : {a.in, a.residual, a.out}) size(v, a.rows * a.width, "in, residual and out");
    size(a.bias, a.width, "bias");
  }
  void of(const LayerNorm& a) {
    norm(a);
    size(a.beta, a.width, "beta");
    is(a.mean, a.rows, DType::f32, "mean");
  }
  void of(const LayerNormBackward& a) {
    norm_backward(a);
    is(a.dbeta, a.width, DType::f32, "dbeta");
    size(a.mean, a.rows, "mean");
  }
  void of(const RmsNorm& a) { norm(a); }
  void of(const RmsNormBackward& a) { norm_backward(a); }
  void of(const Matmul& a) {
    size(a.a, a.m * a.k, "a");
    size(a.b, a.k * a.n, "b");
    size(a.out, a.m * a.n, "out");
    size(a.bias, a.n, "bias");
    size(a.add, a.m * a.n, "add");
    size(a.aux, a.m * a.n, "aux");
    is(a.bias_gradient, a.m, DType::f32, "bias_gradient");
    if (a.aux.present() != (a.epilogue != Epilogue::none)) note("aux goes with a GELU epilogue");
    if (a.epilogue != Epilogue::none && a.accumulate) note("a GELU epilogue does not go with accumulate");
    if (a.bias_gradient.present()) {
      if (!a.transpose_a) note("bias_gradient needs transpose_a");
      if (a.bias.present() || a.add.present() || a.epilogue != Epilogue::none)
        note("bias_gradient goes neither with bias nor with add nor with a GELU epilogue");
    }
    if (a.add.present()) {
      if (a.epilogue != Epilogue::none || a.accumulate)
        note("add goes neither with a GELU epilogue nor with accumulate");
      if (buffer(a.add).type != buffer(a.out).type) note("add and out have different element types");
      if (overlap(a.add, a.out)) note("add and out overlap");
    }
    scaled_factors(a);
  }
  void of(const Quantise& a) {
    for (const View& v : {a.in, a.out, a.out_transposed}) size(v, a.rows * a.width, "in, out and out_transposed");
    type(a.in, {DType::f32, DType::bf16}, "in");
    for (const View& v : {a.out, a.out_transposed}) type(v, {DType::e4m3, DType::e5m2}, "out and out_transposed");
    is(a.bias_gradient, a.width, DType::f32, "bias_gradient");
    if (!a.either().present()) return note("neither out nor out_transposed is there");
    multiples({a.rows, a.width}, fp8_multiple);
    if (!a.either_scale().present()) return note("there is no scale");
    if (!are_of_blocks(buffer(a.either_scale()).type)) {
      if (a.scale_transposed.present()) note("one scale stands for a tensor and its transpose");
      return is(a.scale, 1, DType::f32, "scale");
    }
    if (a.scale.present() != a.out.present() || a.scale_transposed.present() != a.out_transposed.present())
      note("each output goes with the scales of its blocks");
    if (a.out.present()) of_blocks(a.scale, a.rows, a.width, "scale");
    if (a.out_transposed.present()) of_blocks(a.scale_transposed, a.width, a.rows, "scale_transposed");
  }
  void of(const Gelu& a) { size(a.out, a.in.count, "out"); }
  void of(const GeluBackward& a) { size(a.data, a.in.count, "data"); }
  void of(const SwiGlu& a) {
    size(a.in, a.rows * 2 * a.width, "in");
    size(a.out, a.rows * a.width, "out");
  }
  void of(const SwiGluBackward& a) {
    for (const View& v : {a.in, a.din}) size(v, a.rows * 2 * a.width, "in and din");
    size(a.dout, a.rows * a.width, "dout");
  }
  void of(const BiasAdd& a) {
    size(a.data, a.rows * a.width, "data");
    size(a.bias, a.width, "bias");
  }
  void of(const ColumnSum& a) {
    size(a.in, a.rows * a.width, "in");
    is(a.out, a.width, DType::f32, "out");
  }
  void of(const Rope& a) {
    size(a.data, (a.rows - 1) * a.stride + a.heads * a.head_dim, "data");
    if (a.head_dim % 2 != 0) note(fmt::format("a head of {} elements has no pairs that turn", a.head_dim));
    if (a.heads * a.head_dim > a.stride) note("the heads of a row reach into the next one");
    if (a.sequence <= 0) note("a sequence has no length");
    is(a.position_ids, a.rows, DType::i32, "position_ids");
  }
  void of(const Attention& a) {
    attention(a.shape, {a.q}, {a.k, a.v});
    documents(a);
    size(a.out, queries(a.shape) * a.shape.head_dim, "out");
    is(a.stats, queries(a.shape), DType::f32, "stats");
    size(a.probabilities, queries(a.shape) * a.shape.key_length, "probabilities");
  }
  void of(const AttentionMerge& a) {
    for (const View& v : {a.out, a.part_out}) size(v, queries(a.shape) * a.shape.head_dim, "out and part_out");
    for (const View& v : {a.stats, a.part_stats}) size(v, queries(a.shape), "stats and part_stats");
  }
  void of(const AttentionBackward& a) {
    attention(a.shape, {a.q, a.dq}, {a.k, a.v, a.dk, a.dv});
    documents(a);
    for (const View& v : {a.out, a.dout}) size(v, queries(a.shape) * a.shape.head_dim, "out and dout");
    size(a.stats, queries(a.shape), "stats");
    size(a.probabilities, queries(a.shape) * a.shape.key_length, "probabilities");
  }
  void of(const CrossEntropy& a) { logits(a); }
  void of(const CrossEntropyMaximum& a) {
    size(a.logits, a.rows * a.vocab, "logits");
    size(a.maximum, a.rows, "maximum");
  }
  void of(const CrossEntropySums& a) { logits(a); }
  void of(const CrossEntropyGradient& a) { logits(a); }
  void of(const AdamW& a) {
    for (const View& v : {a.moment1, a.moment2, a.gradient, a.weights})
      size(v, a.master.count, "moments, gradient and weights");
    for (const View& v : {a.master, a.moment1, a.moment2, a.gradient})
      type(v, {DType::f32}, "master, moments and gradient");
    size(a.counter, 1, "counter");
    size(a.learning_rate, 1, "learning_rate");
    for (const View& v : {a.scale, a.skip}) is(v, 1, DType::f32, "scale and skip");
  }
  void of(const CheckFinite& a) {
    type(a.in, {DType::f32}, "in");
    is(a.found_inf, 1, DType::f32, "found_inf");
  }
  void of(const UpdateScale& a) {
    for (const View& v : {a.found_inf, a.scale}) is(v, 1, DType::f32, "found_inf and scale");
    for (const View& v : {a.good_steps, a.updates}) is(v, 1, DType::i32, "good_steps and updates");
  }
  void of(const TopK& a) {
    is(a.gradient, a.residual.count, DType::f32, "gradient");
    type(a.residual, {DType::f32}, "residual");
    kept(a.values, a.indices);
    if (a.values.count > a.gradient.count)
      note(fmt::format("{} of {} gradients are none of them", a.values.count, a.gradient.count));
    numbered(a.gradient);
  }
  void of(const ScatterAdd& a) {
    kept(a.values, a.indices);
    type(a.out, {DType::f32}, "out");
    numbered(a.out);
    if (a.parts < 1 || a.values.count % a.parts != 0)
      note(fmt::format("{} values are not {} equal parts", a.values.count, a.parts));
  }
  void of(const AllReduce& a) {
    type(a.data, {DType::f32, DType::bf16, DType::f16}, "data");
    size(a.in, a.data.count, "in");
    if (a.in.present() && buffer(a.in).type != buffer(a.data).type) note("in and data have different element types");
  }
  void of(const AllGather& a) {
    size(a.out, a.in.count * members(a.group), "out");
    in_place(a.in, a.out, a.group);
  }
  void of(const ReduceScatter& a) {
    size(a.in, a.out.count * members(a.group), "in");
    in_place(a.out, a.in, a.group);
  }
  void of(const AllToAll& a) {
    size(a.out, a.in.count, "out");
    if (a.in.count % members(a.group) != 0)
      note(fmt::format("{} elements do not divide among {} members", a.in.count, members(a.group)));
  }
  void of(const Send& a) { peer(a.peer); }
  void of(const Receive& a) { peer(a.peer); }

 private:
  void scaled_factors(const Matmul& m) {
    const DType a = buffer(m.a).type, b = buffer(m.b).type;
    if (is_fp8(a) != m.a_scale.present() || is_fp8(b) != m.b_scale.present() || is_fp8(a) != is_fp8(b))
      return note("8-bit factors, both of them, go with a_scale and b_scale");
    if (!is_fp8(a)) return;
    multiples({m.m, m.n, m.k}, fp8_multiple);
    if (are_of_blocks(buffer(m.a_scale).type)) {
      of_blocks(m.a_scale, m.m, m.k, "a_scale");
      of_blocks(m.b_scale, m.n, m.k, "b_scale");
    } else {
      is(m.a_scale, 1, DType::f32, "a_scale");
      is(m.b_scale, 1, DType::f32, "b_scale");
    }
    if (a == DType::e5m2 && b == DType::e5m2) note("one 8-bit factor is e4m3");
    if (m.transpose_a || !m.transpose_b) note("8-bit factors are stored [m, k] and [n, k]");
    if (m.bias_gradient.present()) note("bias_gradient does not go with 8-bit factors");
  }
  void of_blocks(const View& scales, std::int64_t rows, std::int64_t width, const char* what) {
    multiples({width}, mx_block);
    is(scales, block_scales(rows, width), DType::e8m0, what);
  }
  void multiples(std::initializer_list<std::int64_t> sizes, std::int64_t of) {
    for (const std::int64_t n : sizes) {
      if (n % of != 0) note(fmt::format("{} is not a multiple of {}, as 8-bit matrices need", n, of));
    }
  }
  void note(const std::string& text) {
    if (wrong.empty()) wrong = text;
  }
  const Buffer& buffer(const View& v) const { return program_.buffers[v.buffer]; }
  void size(const View& v, std::int64_t expected, const char* what) {
    if (v.present() && v.count != expected) {
      note(fmt::format("{}: {} has {} elements, expected {}", what, buffer(v).name, v.count, expected));
    }
  }
  // In place, the parts lie in the order of the group's members, so ranks that run one Program need View::own_part.
  void in_place(const View& part, const View& whole, GroupId g) {
    if (!overlap(part, whole)) return;
    const Group& group = set_.groups[g];
    bool own = part.all_parts() == whole && group.axes == AxisSet::of({part.follows}) &&
               group.pipeline_stages.empty() && group.replicas != Replicas::across_nodes &&
               part.parts == group.size(set_.layout);
    if (part.parts == 1) own = group_size_in_role(group) == 1;
    if (!own) note(fmt::format("its part of {} is not that of a member of group {}", buffer(whole).name, group.name));
  }
  // How many members of a group run this Program.
  int group_size_in_role(Group group) const {
    group.axes.bits &= static_cast<std::uint8_t>(~set_.role_axes.bits);
    return group.size(set_.layout);
  }
  void type(const View& v, std::initializer_list<DType> allowed, const char* what) {
    if (!v.present()) return;
    for (const DType t : allowed) {
      if (buffer(v).type == t) return;
    }
    note(fmt::format("{}: {} has the wrong element type", what, buffer(v).name));
  }
  void is(const View& v, std::int64_t expected, DType wanted, const char* what) {
    size(v, expected, what);
    type(v, {wanted}, what);
  }
  void kept(const View& values, const View& indices) {
    type(values, {DType::f32}, "values");
    is(indices, values.count, DType::i32, "indices");
  }
  // Whether an i32 numbers its elements.
  void numbered(const View& v) {
    if (v.count > std::numeric_limits<std::int32_t>::max())
      note(fmt::format("{} has {} elements, more than 32 bits number", buffer(v).name, v.count));
  }
  std::int64_t members(GroupId g) const { return set_.groups[g].size(set_.layout); }
  void peer(const Peer& p) {
    const int n = set_.layout[p.axis];
    if (((p.offset % n) + n) % n == 0)
      note(fmt::format("rank {} would talk to itself along the {} axis", rank_, name_of(p.axis)));
  }
  void norm(const auto& a) {
    for (const View& v : {a.in, a.residual, a.sum, a.out}) size(v, a.rows * a.width, "in, residual, sum and out");
    for (const View& v : {a.bias, a.gamma}) size(v, a.width, "bias and gamma");
    is(a.rstd, a.rows, DType::f32, "rstd");
    if (a.sum.present() != (a.bias.present() || a.residual.present())) note("sum goes with a bias or a residual");
  }
  void norm_backward(const auto& a) {
    for (const View& v : {a.dout, a.sum, a.dresidual, a.din}) size(v, a.rows * a.width, "dout, sum, dresidual and din");
    size(a.gamma, a.width, "gamma");
    for (const View& v : {a.dgamma, a.dbias}) is(v, a.width, DType::f32, "dgamma and dbias");
    size(a.rstd, a.rows, "rstd");
  }
  void embedding(const auto& a, const View& rows, const View& words, const View& positions, const char* what) {
    size(rows, a.rows * a.width, what);
    size(words, a.shard.rows * a.width, "the table");
    size(positions, a.sequence * a.width, "the positions");
    is(a.tokens, a.rows, DType::i32, "tokens");
    is(a.position_ids, a.rows, DType::i32, "position_ids");
  }
  void logits(const auto& a) {
    size(a.logits, a.rows * a.vocab, "logits");
    is(a.labels, a.rows, DType::i32, "labels");
    if constexpr (requires { a.loss; }) {
      is(a.loss, 1, DType::f32, "loss");
      for (const View& v : {a.scale, a.gradient_factor}) is(v, 1, DType::f32, "scale and gradient_factor");
    }
    if constexpr (requires { a.target; }) {
      for (const View& v : {a.maximum, a.target, a.sum}) size(v, a.rows, "maximum, target and sum");
    }
  }
  static std::int64_t queries(const AttentionShape& s) { return s.batch * s.query_length * s.heads; }
  // The elements a strided operand spans from its first to its last.
  static std::int64_t span(std::int64_t rows, std::int64_t stride, std::int64_t width) {
    return (rows - 1) * stride + width;
  }
  void documents(const auto& a) {
    const AttentionShape& s = a.shape;
    is(a.position_ids, s.batch * s.query_length, DType::i32, "position_ids");
    if (a.position_ids.present() && (!s.causal || s.query_length != s.key_length))
      note("position_ids go with causal attention, with as many keys as queries");
    if (a.position_ids.present() != (a.documents > 0)) note("position_ids go with the most documents of a sequence");
  }
  void attention(const AttentionShape& s, std::initializer_list<View> q, std::initializer_list<View> kv) {
    if (s.group < 1 || s.heads % s.group != 0)
      return note(fmt::format("{} heads are no groups of {}", s.heads, s.group));
    for (const View& v : q) size(v, span(s.batch * s.query_length, s.query_stride, s.heads * s.head_dim), "q");
    for (const View& v : kv) size(v, span(s.batch * s.key_length, s.key_stride, s.kv_heads() * s.head_dim), "k and v");
  }

  const ProgramSet& set_;
  const Program& program_;
  int rank_;
};

}  // namespace

std::string check_shapes(const ProgramSet& set, const Program& program, int rank, const Action& action) {
  Shapes shapes(set, program, rank);
  std::visit([&](const auto& a) { shapes.of(a); }, action);
  return shapes.wrong;
}

}  // namespace harness::program
