#include "backend/cpu/compile.h"

#include "backend/cpu/kernels.h"

namespace harness::cpu {
namespace {

// The kernels compute in one type per operation; a Program that mixes them needs a Convert.
void same_type(std::initializer_list<Tensor> tensors, std::string_view name) {
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    if (!t) continue;
    if (first == nullptr) first = &t;
    if (t.type != first->type) fail("{}: the cpu backend wants its tensors in one type; add a convert", name);
  }
}

// A stored row-major matrix of `columns` columns, seen as it is or transposed.
MatrixForm matrix(DType type, std::int64_t columns, bool transposed) {
  return transposed ? MatrixForm{type, 1, columns, 0} : MatrixForm{type, columns, 1, 0};
}

void record(const Tensor& value, const Tensor& ring, const Tensor& counter) {
  auto& steps = counter.as<std::int32_t>()[0];
  ring.f32()[steps % ring.count] = value.f32()[0];
  ++steps;
}

}  // namespace

Compiler::Compiler(const ExecutableRequest& request, std::function<Tensor(const View&)> tensor)
    : tensor_(std::move(tensor)),
      at_(request.layout.coordinates(request.rank)),
      seed_(request.seed),
      threads_(request.threads) {}
Compiler::~Compiler() = default;

void Compiler::need_scratch(std::int64_t floats) {
  const auto n = static_cast<std::size_t>(floats);
  if (scratch_->size() < n) scratch_->resize(n);
}

std::shared_ptr<AttentionKernel> Compiler::attention(const AttentionShape& s, DType type, bool backward) {
  const AttentionKey key{s.batch,        s.heads,      s.head_dim, s.query_length, s.key_length,
                         s.query_stride, s.key_stride, s.causal,   type,           backward};
  auto& kernel = attention_[key];
  if (!kernel) kernel = std::make_shared<AttentionKernel>(s, type, threads_, backward);
  return kernel;
}

std::function<void()> Compiler::product(const Matmul& op) {
  const Tensor a = at(op.a), b = at(op.b), bias = at(op.bias), aux = at(op.aux), out = at(op.out),
               bias_gradient = at(op.bias_gradient);
  if (op.epilogue != Epilogue::none && op.accumulate) fail("matmul: a GELU of an accumulated product makes no sense");
  const bool gelu_forward = op.epilogue == Epilogue::gelu;
  const Tensor to = gelu_forward ? aux : out;
  const ProductForm form{.batch = 1,
                         .m = op.m,
                         .n = op.n,
                         .k = op.k,
                         .a = matrix(a.type, op.transpose_a ? op.m : op.k, op.transpose_a),
                         .b = matrix(b.type, op.transpose_b ? op.k : op.n, op.transpose_b),
                         .out = matrix(to.type, op.n, false),
                         .bias = static_cast<bool>(bias),
                         .bias_type = bias ? bias.type : DType::f32,
                         .accumulate = op.accumulate};
  auto multiply = std::make_shared<Product>(form, *workspace_);
  const auto keep = workspace_;
  if (op.epilogue == Epilogue::none && !bias_gradient) {
    return [multiply, keep, a, b, bias, to] { (*multiply)(a.data, b.data, bias.data, to.data); };
  }
  if (bias_gradient && !op.transpose_a) fail("matmul: a bias gradient needs transpose_a");
  return [multiply, keep, a, b, bias, aux, out, to, bias_gradient, op, gelu_forward] {
    (*multiply)(a.data, b.data, bias.data, to.data);
    if (gelu_forward) gelu(aux, out);
    if (op.epilogue == Epilogue::gelu_backward) gelu_backward(aux, out);
    if (bias_gradient) column_sum(a, bias_gradient, op.k, op.m, op.accumulate);
  };
}

template <class A>
std::function<void()> Compiler::of(const A& op) {
  if constexpr (std::is_same_v<A, Fill>) {
    return [out = at(op.out), op] { fill(out, op.value); };
  } else if constexpr (std::is_same_v<A, Initialize>) {
    return [out = at(op.out), op, c = coordinate(op.axis), seed = seed_] { initialize(op, out, c, seed); };
  } else if constexpr (std::is_same_v<A, Convert>) {
    return [in = at(op.in), out = at(op.out)] { convert(in, out); };
  } else if constexpr (std::is_same_v<A, Record>) {
    return [value = at(op.value), ring = at(op.ring), counter = at(op.counter)] { record(value, ring, counter); };
  } else if constexpr (std::is_same_v<A, Embedding>) {
    const int c = coordinate(op.shard.axis);
    const Tensor positions = c == 0 ? at(op.positions) : Tensor{};
    same_type({at(op.words), at(op.positions), at(op.out)}, A::name);
    return [tokens = at(op.tokens), words = at(op.words), positions, out = at(op.out), op, first = c * op.shard.rows] {
      embedding(tokens, words, positions, out, op, first);
    };
  } else if constexpr (std::is_same_v<A, EmbeddingBackward>) {
    return [tokens = at(op.tokens), dout = at(op.dout), dwords = at(op.dwords), dpositions = at(op.dpositions), op,
            first = coordinate(op.shard.axis) * op.shard.rows] {
      embedding_backward(tokens, dout, dwords, dpositions, op, first);
    };
  } else if constexpr (std::is_same_v<A, ResidualAdd>) {
    same_type({at(op.in), at(op.bias), at(op.residual), at(op.out)}, A::name);
    return [in = at(op.in), bias = at(op.bias), residual = at(op.residual), out = at(op.out), op] {
      residual_add(in, bias, residual, out, op.rows, op.width);
    };
  } else if constexpr (std::is_same_v<A, LayerNorm>) {
    const LayerNormArguments t{at(op.in),  at(op.bias), at(op.residual), at(op.gamma), at(op.beta),
                               at(op.sum), at(op.out),  at(op.mean),     at(op.rstd)};
    same_type({t.in, t.bias, t.residual, t.gamma, t.beta, t.sum, t.out}, A::name);
    return [t, op] { layer_norm(t, op.rows, op.width, op.epsilon); };
  } else if constexpr (std::is_same_v<A, LayerNormBackward>) {
    const LayerNormBackwardArguments t{at(op.dout),      at(op.sum), at(op.gamma),  at(op.mean),  at(op.rstd),
                                       at(op.dresidual), at(op.din), at(op.dgamma), at(op.dbeta), at(op.dbias)};
    same_type({t.dout, t.sum, t.gamma, t.dresidual, t.din}, A::name);
    need_scratch(layer_norm_backward_scratch(op.width, threads_));
    return [t, op, scratch = scratch_] { layer_norm_backward(t, op.rows, op.width, op.accumulate, scratch->data()); };
  } else if constexpr (std::is_same_v<A, Matmul>) {
    return product(op);
  } else if constexpr (std::is_same_v<A, Gelu>) {
    same_type({at(op.in), at(op.out)}, A::name);
    return [in = at(op.in), out = at(op.out)] { gelu(in, out); };
  } else if constexpr (std::is_same_v<A, GeluBackward>) {
    same_type({at(op.in), at(op.data)}, A::name);
    return [in = at(op.in), data = at(op.data)] { gelu_backward(in, data); };
  } else if constexpr (std::is_same_v<A, BiasAdd>) {
    same_type({at(op.bias), at(op.data)}, A::name);
    return [bias = at(op.bias), data = at(op.data), op] { residual_add(data, bias, {}, data, op.rows, op.width); };
  } else if constexpr (std::is_same_v<A, ColumnSum>) {
    return [in = at(op.in), out = at(op.out), op] { column_sum(in, out, op.rows, op.width, op.accumulate); };
  } else if constexpr (std::is_same_v<A, Attention>) {
    same_type({at(op.q), at(op.k), at(op.v), at(op.out)}, A::name);
    return [kernel = attention(op.shape, at(op.q).type, false), q = at(op.q), k = at(op.k), v = at(op.v),
            out = at(op.out), stats = at(op.stats)] { kernel->forward(q, k, v, out, stats); };
  } else if constexpr (std::is_same_v<A, AttentionMerge>) {
    same_type({at(op.part_out), at(op.out)}, A::name);
    return [part_out = at(op.part_out), part_stats = at(op.part_stats), out = at(op.out), stats = at(op.stats), op] {
      attention_merge(part_out, part_stats, out, stats, op.shape);
    };
  } else if constexpr (std::is_same_v<A, AttentionBackward>) {
    const AttentionKernel::BackwardArguments t{at(op.q),    at(op.k),  at(op.v),  at(op.out), at(op.stats),
                                               at(op.dout), at(op.dq), at(op.dk), at(op.dv)};
    same_type({t.q, t.k, t.v, t.out, t.dout, t.dq, t.dk, t.dv}, A::name);
    return [kernel = attention(op.shape, t.q.type, true), t, op] { kernel->backward(t, op.accumulate); };
  } else if constexpr (std::is_same_v<A, CrossEntropy>) {
    need_scratch(op.rows);
    return [logits = at(op.logits), labels = at(op.labels), loss = at(op.loss), op, scratch = scratch_] {
      cross_entropy(logits, labels, loss, op, scratch->data());
    };
  } else if constexpr (std::is_same_v<A, CrossEntropyMaximum>) {
    return [logits = at(op.logits), maximum = at(op.maximum), op] {
      cross_entropy_maximum(logits, maximum, op.rows, op.vocab);
    };
  } else if constexpr (std::is_same_v<A, CrossEntropySums>) {
    return [logits = at(op.logits), labels = at(op.labels), maximum = at(op.maximum), target = at(op.target),
            sum = at(op.sum), op, first = coordinate(op.shard.axis) * op.shard.rows] {
      cross_entropy_sums(logits, labels, maximum, target, sum, op.rows, op.vocab, first);
    };
  } else if constexpr (std::is_same_v<A, CrossEntropyGradient>) {
    return [logits = at(op.logits), labels = at(op.labels), maximum = at(op.maximum), target = at(op.target),
            sum = at(op.sum), loss = at(op.loss), op, first = coordinate(op.shard.axis) * op.shard.rows] {
      cross_entropy_gradient(logits, labels, maximum, target, sum, loss, op, first);
    };
  } else if constexpr (std::is_same_v<A, AdamW>) {
    return [master = at(op.master), m = at(op.moment1), v = at(op.moment2), gradient = at(op.gradient),
            weights = at(op.weights), counter = at(op.counter), rate = at(op.learning_rate), op] {
      const double step = static_cast<double>(counter.i32()[0]) + 1;
      adamw(master, m, v, gradient, weights, step, static_cast<double>(rate.f32()[0]), op);
    };
  } else {
    fail("{}: not a compute operation", A::name);
  }
}

std::function<void()> Compiler::compile(const Operation& op) {
  const bool needs_pool = std::holds_alternative<Matmul>(op.action) || std::holds_alternative<Attention>(op.action) ||
                          std::holds_alternative<AttentionBackward>(op.action);
  if (needs_pool && op.stream != 0) {
    fail("{} is on stream {}: the cpu backend multiplies on the compute stream only", title(op), op.stream);
  }
  return std::visit([&](const auto& a) { return of(a); }, op.action);
}

}  // namespace harness::cpu
