#include "backend/cuda/compile.h"

#include <algorithm>

#include "backend/cuda/kernels.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

void same_type(std::initializer_list<Tensor> tensors, std::string_view name) {
  const DType type = tensors.begin()->type;
  for (const Tensor& t : tensors) {
    if (t && t.type != type) fail("{}: all tensors must have one type", name);
  }
}

}  // namespace

struct Compiler::OfStream {
  std::unique_ptr<Blas> blas;  // where there are products
  Memory scratch;
  using AttentionKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                  std::int64_t, bool, DType>;
  std::map<AttentionKey, std::unique_ptr<AttentionKernel>> attention;

  float* floats() const { return reinterpret_cast<float*>(scratch.data()); }
  Blas& products() {
    if (!blas) blas = std::make_unique<Blas>();
    return *blas;
  }
};

Compiler::Compiler(const ExecutableRequest& request, std::function<Tensor(const View&)> tensor)
    : tensor_(std::move(tensor)),
      at_(request.layout.coordinates(request.rank)),
      seed_(request.seed),
      settings_(request.settings),
      tuning_(request.tuning) {
  for (const auto* list : {&request.program->init, &request.program->step}) {
    for (const Operation& op : *list) {
      std::int64_t& floats = scratch_of_[op.stream];
      floats = std::max(floats, scratch_floats(op.action));
    }
  }
}

Compiler::~Compiler() = default;

Compiler::OfStream& Compiler::of_stream(StreamId stream) {
  auto& own = streams_[stream];
  if (!own) {
    own = std::make_unique<OfStream>();
    own->scratch = Memory(Memory::Kind::device, scratch_of_[stream] * size_of(DType::f32), "scratch of own kernels");
  }
  return *own;
}

std::int64_t Compiler::scratch_floats(const Action& action) const {
  if (const auto* op = std::get_if<LayerNormBackward>(&action)) return layer_norm_backward_scratch(op->rows, op->width);
  if (const auto* op = std::get_if<ColumnSum>(&action)) return column_sum_scratch(op->rows, op->width);
  if (const auto* op = std::get_if<CrossEntropy>(&action)) return op->rows;
  if (const auto* op = std::get_if<CrossEntropyGradient>(&action)) return op->rows;
  if (const auto* op = std::get_if<Matmul>(&action)) return Blas::scratch_floats(product_for(*op));
  return 0;
}

std::int64_t Compiler::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [stream, own] : streams_) bytes += own->scratch.bytes() + (own->blas ? Blas::workspace_bytes : 0);
  return bytes;
}

void Compiler::warn_once(const std::string& text) {
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(text);
}

Product Compiler::product_for(const Matmul& op) const {
  int aligned = 256;
  for (const View& v : {op.a, op.b, op.out, op.aux, op.bias, op.bias_gradient}) {
    if (v.present()) aligned = std::min(aligned, alignment_of(at(v).data));
  }
  return product_of(op, at(op.a).type, at(op.b).type, at(op.out).type, settings_.precision == Precision::tf32, aligned);
}

Compiler::Run Compiler::product(const Matmul& op, OfStream& own) {
  const Product product = product_for(op);
  const Operands operands{at(op.a), at(op.b), at(op.bias), at(op.aux), at(op.out), at(op.bias_gradient), own.floats()};
  Blas& blas = own.products();
  if (tuning_) {
    const auto tuned = tuning_->find(key_of(product));
    if (tuned != tuning_->end()) return blas.prepare(product, operands, parse_choice(tuned->second));
    // Where tuning was done at all, what it left out should be known.
    if (!tuning_->empty()) {
      warn_once(
          "some matrix products were not tuned and run by cuBLASLt's first proposal (/tuning lists those that were): "
          "more "
          "free memory on the GPU lets all be timed");
    }
  }
  return blas.prepare(product, operands, blas.default_choice(product, operands));
}

AttentionKernel& Compiler::attention(const AttentionShape& s, DType type, OfStream& own) {
  const OfStream::AttentionKey key{s.batch,      s.heads,  s.head_dim, s.query_length, s.key_length, s.query_stride,
                                   s.key_stride, s.causal, type};
  auto& kernel = own.attention[key];
  if (kernel) return *kernel;
  bool fused = settings_.attention == AttentionKind::fused;
  if (const std::string why = fused_attention_unavailable(type); fused && !why.empty()) {
    fused = false;
    warn_once("attention ran unfused: " + why);
  }
  kernel = fused ? make_fused_attention(s, type, settings_.attention_engine)
                 : make_unfused_attention(s, type, settings_.precision == Precision::tf32, own.products());
  return *kernel;
}

template <class A>
Compiler::Run Compiler::of(const A& op, OfStream& own) {
  float* scratch = own.floats();
  if constexpr (std::is_same_v<A, Fill>) {
    return [out = at(op.out), op](Stream s) { fill(s, out, op.value); };
  } else if constexpr (std::is_same_v<A, Initialize>) {
    return [out = at(op.out), op, c = coordinate(op.axis), seed = seed_](Stream s) { initialize(s, op, out, c, seed); };
  } else if constexpr (std::is_same_v<A, Convert>) {
    return [in = at(op.in), out = at(op.out)](Stream s) { convert(s, in, out); };
  } else if constexpr (std::is_same_v<A, Record>) {
    return [value = at(op.value), ring = at(op.ring), counter = at(op.counter)](Stream s) {
      record(s, value, ring, counter);
    };
  } else if constexpr (std::is_same_v<A, Embedding>) {
    const int c = coordinate(op.shard.axis);
    const Tensor positions = c == 0 ? at(op.positions) : Tensor{};
    same_type({at(op.words), at(op.positions), at(op.out)}, A::name);
    return [tokens = at(op.tokens), words = at(op.words), positions, out = at(op.out), op,
            first = c * op.shard.rows](Stream s) { embedding(s, tokens, words, positions, out, op, first); };
  } else if constexpr (std::is_same_v<A, EmbeddingBackward>) {
    return [tokens = at(op.tokens), dout = at(op.dout), dwords = at(op.dwords), dpositions = at(op.dpositions), op,
            first = coordinate(op.shard.axis) * op.shard.rows](Stream s) {
      embedding_backward(s, tokens, dout, dwords, dpositions, op, first);
    };
  } else if constexpr (std::is_same_v<A, ResidualAdd>) {
    same_type({at(op.in), at(op.bias), at(op.residual), at(op.out)}, A::name);
    return [in = at(op.in), bias = at(op.bias), residual = at(op.residual), out = at(op.out), op](Stream s) {
      residual_add(s, in, bias, residual, out, op.rows, op.width);
    };
  } else if constexpr (std::is_same_v<A, LayerNorm>) {
    const LayerNormArguments t{at(op.in),  at(op.bias), at(op.residual), at(op.gamma), at(op.beta),
                               at(op.sum), at(op.out),  at(op.mean),     at(op.rstd)};
    same_type({t.in, t.bias, t.residual, t.gamma, t.beta, t.sum, t.out}, A::name);
    return [t, op](Stream s) { layer_norm(s, t, op.rows, op.width, op.epsilon); };
  } else if constexpr (std::is_same_v<A, LayerNormBackward>) {
    const LayerNormBackwardArguments t{at(op.dout),      at(op.sum), at(op.gamma),  at(op.mean),  at(op.rstd),
                                       at(op.dresidual), at(op.din), at(op.dgamma), at(op.dbeta), at(op.dbias)};
    same_type({t.dout, t.sum, t.gamma, t.dresidual, t.din}, A::name);
    return [t, op, scratch](Stream s) { layer_norm_backward(s, t, op.rows, op.width, op.accumulate, scratch); };
  } else if constexpr (std::is_same_v<A, Matmul>) {
    return product(op, own);
  } else if constexpr (std::is_same_v<A, Gelu>) {
    same_type({at(op.in), at(op.out)}, A::name);
    return [in = at(op.in), out = at(op.out)](Stream s) { gelu(s, in, out); };
  } else if constexpr (std::is_same_v<A, GeluBackward>) {
    same_type({at(op.in), at(op.data)}, A::name);
    return [in = at(op.in), data = at(op.data)](Stream s) { gelu_backward(s, in, data); };
  } else if constexpr (std::is_same_v<A, BiasAdd>) {
    same_type({at(op.bias), at(op.data)}, A::name);
    return [bias = at(op.bias), data = at(op.data), op](Stream s) {
      residual_add(s, data, bias, {}, data, op.rows, op.width);
    };
  } else if constexpr (std::is_same_v<A, ColumnSum>) {
    return [in = at(op.in), out = at(op.out), op, scratch](Stream s) {
      column_sum(s, in, out, op.rows, op.width, op.accumulate, scratch);
    };
  } else if constexpr (std::is_same_v<A, Attention>) {
    const AttentionOperands t{at(op.q), at(op.k), at(op.v), at(op.out), at(op.stats), {}, {}, {}, {}};
    same_type({t.q, t.k, t.v, t.out}, A::name);
    return attention(op.shape, t.q.type, own).forward(t);
  } else if constexpr (std::is_same_v<A, AttentionMerge>) {
    same_type({at(op.part_out), at(op.out)}, A::name);
    return [part_out = at(op.part_out), part_stats = at(op.part_stats), out = at(op.out), stats = at(op.stats),
            op](Stream s) { attention_merge(s, part_out, part_stats, out, stats, op.shape); };
  } else if constexpr (std::is_same_v<A, AttentionBackward>) {
    const AttentionOperands t{at(op.q),    at(op.k),  at(op.v),  at(op.out), at(op.stats),
                              at(op.dout), at(op.dq), at(op.dk), at(op.dv)};
    same_type({t.q, t.k, t.v, t.out, t.dout, t.dq, t.dk, t.dv}, A::name);
    return attention(op.shape, t.q.type, own).backward(t, op.accumulate);
  } else if constexpr (std::is_same_v<A, CrossEntropy>) {
    return [logits = at(op.logits), labels = at(op.labels), loss = at(op.loss), op, scratch](Stream s) {
      cross_entropy(s, logits, labels, loss, op, scratch);
    };
  } else if constexpr (std::is_same_v<A, CrossEntropyMaximum>) {
    return [logits = at(op.logits), maximum = at(op.maximum), op](Stream s) {
      cross_entropy_maximum(s, logits, maximum, op.rows, op.vocab);
    };
  } else if constexpr (std::is_same_v<A, CrossEntropySums>) {
    return [logits = at(op.logits), labels = at(op.labels), maximum = at(op.maximum), target = at(op.target),
            sum = at(op.sum), op, first = coordinate(op.shard.axis) * op.shard.rows](Stream s) {
      cross_entropy_sums(s, logits, labels, maximum, target, sum, op.rows, op.vocab, first);
    };
  } else if constexpr (std::is_same_v<A, CrossEntropyGradient>) {
    return [logits = at(op.logits), labels = at(op.labels), maximum = at(op.maximum), target = at(op.target),
            sum = at(op.sum), loss = at(op.loss), op, first = coordinate(op.shard.axis) * op.shard.rows, scratch](
               Stream s) { cross_entropy_gradient(s, logits, labels, maximum, target, sum, loss, op, first, scratch); };
  } else if constexpr (std::is_same_v<A, AdamW>) {
    return [master = at(op.master), m = at(op.moment1), v = at(op.moment2), gradient = at(op.gradient),
            weights = at(op.weights), counter = at(op.counter), rate = at(op.learning_rate),
            op](Stream s) { adamw(s, op, master, m, v, gradient, weights, counter, rate); };
  } else {
    fail("{}: not a compute operation", A::name);
  }
}

Compiler::Run Compiler::compile(const Operation& operation) {
  OfStream& own = of_stream(operation.stream);
  return std::visit([&](const auto& a) { return of(a, own); }, operation.action);
}

}  // namespace harness::cuda
