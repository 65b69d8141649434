#include "program/program.h"

#include <initializer_list>
#include <limits>

#include "base/floats.h"
#include "base/text.h"

namespace harness::program {
namespace {

class Shapes {
 public:
  Shapes(const ProgramSet& set, const Program& program, int rank) : set_(set), program_(program), rank_(rank) {}
  std::string wrong;  // the first error

  void of(const Fill&) {}
  void of(const Initialize& a) {
    f32(a.outer * a.part * a.inner, a.out);
    if (a.part * (set_.layout[a.axis]) != a.full && a.part != a.full)
      note(fmt::format("{} parts of {} do not make {}", set_.layout[a.axis], a.part, a.full));
  }
  void of(const Convert& a) { sizes(a.in.count, a.out); }
  void of(const Record& a) {
    f32(1, a.value);
    f32(a.ring.count, a.ring);
    i32(1, a.counter);
  }
  void of(const Embedding& a) { embedding(a, a.out, a.words, a.positions); }
  void of(const EmbeddingBackward& a) {
    embedding(a, a.dout, a.dwords, a.dpositions);
    f32(a.dwords.count, a.dwords);
    f32(a.dpositions.count, a.dpositions);
  }
  void of(const ResidualAdd& a) {
    sizes(a.rows * a.width, a.in, a.residual, a.out);
    sizes(a.width, a.bias);
  }
  void of(const LayerNorm& a) {
    norm(a);
    sizes(a.width, a.beta);
    f32(a.rows, a.mean);
  }
  void of(const LayerNormBackward& a) {
    norm_backward(a);
    f32(a.width, a.dbeta);
    f32(a.rows, a.mean);
  }
  void of(const RmsNorm& a) { norm(a); }
  void of(const RmsNormBackward& a) { norm_backward(a); }
  void of(const Matmul& a) {
    sizes(a.m * a.k, a.a);
    sizes(a.k * a.n, a.b);
    sizes(a.m * a.n, a.out, a.add, a.aux);
    sizes(a.n, a.bias);
    f32(a.m, a.bias_gradient);
    const bool gelu = a.epilogue != Epilogue::none, adds = a.add.present(), sums = a.bias_gradient.present();
    require(a.aux.present() == gelu, "aux goes with a GELU epilogue");
    require(gelu + adds + sums <= 1 && !(a.accumulate && (gelu || adds)) && !(sums && a.bias.present()),
            "bias, add, bias_gradient, a GELU epilogue and accumulate do not all go together");
    require(!sums || a.transpose_a, "bias_gradient needs transpose_a");
    if (adds) {
      require(type_of(a.add) == type_of(a.out), "add and out have different element types");
      require(!overlap(a.add, a.out), "add and out overlap");
    }
    scaled_factors(a);
  }
  void of(const Quantise& a) {
    sizes(a.rows * a.width, a.in, a.out, a.out_transposed);
    types(a.in, {DType::f32, DType::bf16});
    types(a.out, {DType::e4m3, DType::e5m2});
    types(a.out_transposed, {DType::e4m3, DType::e5m2});
    f32(a.width, a.bias_gradient);
    if (!a.either().present()) return note("neither out nor out_transposed is there");
    multiples({a.rows, a.width}, fp8_multiple);
    if (!a.either_scale().present()) return note("there is no scale");
    if (!are_of_blocks(type_of(a.either_scale()))) {
      require(!a.scale_transposed.present(), "one scale stands for a tensor and its transpose");
      return f32(1, a.scale);
    }
    require(a.scale.present() == a.out.present() && a.scale_transposed.present() == a.out_transposed.present(),
            "each output goes with the scales of its blocks");
    if (a.out.present()) of_blocks(a.scale, a.rows, a.width);
    if (a.out_transposed.present()) of_blocks(a.scale_transposed, a.width, a.rows);
  }
  void of(const Gelu& a) { sizes(a.in.count, a.out); }
  void of(const GeluBackward& a) { sizes(a.in.count, a.data); }
  void of(const SwiGlu& a) {
    sizes(a.rows * 2 * a.width, a.in);
    sizes(a.rows * a.width, a.out);
  }
  void of(const SwiGluBackward& a) {
    sizes(a.rows * 2 * a.width, a.in, a.din);
    sizes(a.rows * a.width, a.dout);
  }
  void of(const BiasAdd& a) {
    sizes(a.rows * a.width, a.data);
    sizes(a.width, a.bias);
  }
  void of(const ColumnSum& a) {
    sizes(a.rows * a.width, a.in);
    f32(a.width, a.out);
  }
  void of(const Rope& a) {
    sizes(span(a.rows, a.stride, a.heads * a.head_dim), a.data);
    require(a.head_dim % 2 == 0 && a.heads * a.head_dim <= a.stride && a.sequence > 0,
            "heads have pairs of elements and lie within their row of a sequence");
    i32(a.rows, a.position_ids);
  }
  void of(const Attention& a) { attention(a, {a.q}, {a.k, a.v}); }
  void of(const AttentionBackward& a) {
    attention(a, {a.q, a.dq}, {a.k, a.v, a.dk, a.dv});
    sizes(queries(a.shape) * a.shape.head_dim, a.dout);
  }
  void of(const CrossEntropy& a) { logits(a); }
  void of(const CrossEntropyMaximum& a) {
    sizes(a.rows * a.vocab, a.logits);
    f32(a.rows, a.maximum);
  }
  void of(const CrossEntropySums& a) { logits(a); }
  void of(const CrossEntropyGradient& a) { logits(a); }
  void of(const AdamW& a) {
    f32(a.master.count, a.master, a.moment1, a.moment2, a.gradient);
    sizes(a.master.count, a.weights);
    sizes(1, a.counter, a.learning_rate);
    f32(1, a.scale, a.skip);
  }
  void of(const CheckFinite& a) {
    f32(a.in.count, a.in);
    f32(1, a.found_inf);
  }
  void of(const UpdateScale& a) {
    f32(1, a.found_inf, a.scale);
    i32(1, a.good_steps, a.updates);
  }
  void of(const TopK& a) {
    f32(a.residual.count, a.gradient, a.residual);
    kept(a.values, a.indices, a.gradient);
    require(a.values.count <= a.gradient.count, "more values are kept than there are");
  }
  void of(const ScatterAdd& a) {
    f32(a.out.count, a.out);
    kept(a.values, a.indices, a.out);
    require(a.parts >= 1 && a.values.count % a.parts == 0, "the values have no equal parts");
  }
  void of(const AllReduce& a) {
    types(a.data, {DType::f32, DType::bf16, DType::f16});
    sizes(a.data.count, a.in);
    require(!a.in.present() || type_of(a.in) == type_of(a.data), "in and data have different element types");
  }
  void of(const AllGather& a) {
    sizes(a.in.count * members(a.group), a.out);
    in_place(a.in, a.out, a.group);
  }
  void of(const ReduceScatter& a) {
    sizes(a.out.count * members(a.group), a.in);
    in_place(a.out, a.in, a.group);
  }
  void of(const AllToAll& a) {
    sizes(a.in.count, a.out);
    require(a.in.count % members(a.group) == 0, "the elements do not divide among the members");
  }
  void of(const Send& a) { peer(a.peer); }
  void of(const Receive& a) { peer(a.peer); }

 private:
  void note(const std::string& text) {
    if (wrong.empty()) wrong = text;
  }
  void require(bool holds, const char* text) {
    if (!holds) note(text);
  }
  const Buffer& buffer(const View& v) const { return program_.buffers[v.buffer]; }
  DType type_of(const View& v) const { return buffer(v).type; }
  void types(const View& v, std::initializer_list<DType> allowed) {
    if (!v.present()) return;
    for (const DType t : allowed) {
      if (type_of(v) == t) return;
    }
    note(fmt::format("{} has the wrong element type, {}", buffer(v).name, name_of(type_of(v))));
  }
  // Checks the views that are present.
  void sizes(std::int64_t expected, const auto&... views) {
    const auto size = [&](const View& v) {
      if (v.present() && v.count != expected)
        note(fmt::format("{} has {} elements, expected {}", buffer(v).name, v.count, expected));
    };
    (size(views), ...);
  }
  void f32(std::int64_t expected, const auto&... views) {
    sizes(expected, views...);
    (types(views, {DType::f32}), ...);
  }
  void i32(std::int64_t expected, const auto&... views) {
    sizes(expected, views...);
    (types(views, {DType::i32}), ...);
  }
  void multiples(std::initializer_list<std::int64_t> all, std::int64_t of) {
    for (const std::int64_t n : all) {
      if (n % of != 0) note(fmt::format("{} is not a multiple of {}, as 8-bit matrices need", n, of));
    }
  }
  void of_blocks(const View& scales, std::int64_t rows, std::int64_t width) {
    multiples({width}, mx_block);
    sizes(block_scales(rows, width), scales);
    types(scales, {DType::e8m0});
  }
  void scaled_factors(const Matmul& m) {
    const DType a = type_of(m.a), b = type_of(m.b);
    if (is_fp8(a) != m.a_scale.present() || is_fp8(b) != m.b_scale.present() || is_fp8(a) != is_fp8(b))
      return note("8-bit factors, both of them, go with a_scale and b_scale");
    if (!is_fp8(a)) return;
    multiples({m.m, m.n, m.k}, fp8_multiple);
    if (are_of_blocks(type_of(m.a_scale))) {
      of_blocks(m.a_scale, m.m, m.k);
      of_blocks(m.b_scale, m.n, m.k);
    } else {
      f32(1, m.a_scale, m.b_scale);
    }
    require(a == DType::e4m3 || b == DType::e4m3, "one 8-bit factor is e4m3");
    require(!m.transpose_a && m.transpose_b, "8-bit factors are stored [m, k] and [n, k]");
    require(!m.bias_gradient.present(), "bias_gradient does not go with 8-bit factors");
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
  // Number of members of a group that run this Program.
  int group_size_in_role(Group group) const {
    group.axes.bits &= static_cast<std::uint8_t>(~set_.role_axes.bits);
    return group.size(set_.layout);
  }
  // An i32 must be able to index the elements of `of`.
  void kept(const View& values, const View& indices, const View& of) {
    f32(values.count, values);
    i32(values.count, indices);
    require(of.count <= std::numeric_limits<std::int32_t>::max(), "there are more elements than 32 bits number");
  }
  std::int64_t members(GroupId g) const { return set_.groups[g].size(set_.layout); }
  void peer(const Peer& p) {
    if (p.offset % set_.layout[p.axis] == 0)
      note(fmt::format("rank {} would talk to itself along the {} axis", rank_, name_of(p.axis)));
  }
  void norm(const auto& a) {
    sizes(a.rows * a.width, a.in, a.residual, a.sum, a.out);
    sizes(a.width, a.bias, a.gamma);
    f32(a.rows, a.rstd);
    require(a.sum.present() == (a.bias.present() || a.residual.present()), "sum goes with a bias or a residual");
  }
  void norm_backward(const auto& a) {
    sizes(a.rows * a.width, a.dout, a.sum, a.dresidual, a.din);
    sizes(a.width, a.gamma);
    f32(a.width, a.dgamma, a.dbias);
    f32(a.rows, a.rstd);
  }
  void embedding(const auto& a, const View& rows, const View& words, const View& positions) {
    sizes(a.rows * a.width, rows);
    sizes(a.shard.rows * a.width, words);
    sizes(a.sequence * a.width, positions);
    i32(a.rows, a.tokens, a.position_ids);
  }
  void logits(const auto& a) {
    sizes(a.rows * a.vocab, a.logits);
    i32(a.rows, a.labels);
    if constexpr (requires { a.loss; }) f32(1, a.loss, a.scale, a.gradient_factor);
    if constexpr (requires { a.target; }) f32(a.rows, a.maximum, a.target, a.sum);
  }
  static std::int64_t queries(const AttentionShape& s) { return s.batch * s.query_length * s.heads; }
  // Number of elements that a strided operand spans from its first to its last.
  static std::int64_t span(std::int64_t rows, std::int64_t stride, std::int64_t width) {
    return (rows - 1) * stride + width;
  }
  void attention(const auto& a, std::initializer_list<View> q, std::initializer_list<View> kv) {
    const AttentionShape& s = a.shape;
    if (s.group < 1 || s.heads % s.group != 0)
      return note(fmt::format("{} heads are no groups of {}", s.heads, s.group));
    for (const View& v : q) sizes(span(s.batch * s.query_length, s.query_stride, s.heads * s.head_dim), v);
    for (const View& v : kv) sizes(span(s.batch * s.key_length, s.key_stride, s.kv_heads() * s.head_dim), v);
    sizes(queries(s) * s.head_dim, a.out);
    f32(queries(s), a.stats);
    sizes(queries(s) * s.key_length, a.probabilities);
    i32(s.batch * s.query_length, a.position_ids);
    const bool documents = a.position_ids.present();
    require(!documents || (s.causal && s.query_length == s.key_length),
            "position_ids go with causal attention, with as many keys as queries");
    require(documents == (a.documents > 0), "position_ids go with the most documents of a sequence");
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
