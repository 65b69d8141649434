#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/kernels/kernels.h"
#include "base/text.h"

namespace harness::cuda {
struct Compiler::OfStream {
  std::unique_ptr<Blas> blas;  // where there are products
  Memory scratch;
  backend::KernelContext context;
  std::map<AttentionForm, std::unique_ptr<AttentionKernel>> attention;

  Blas& products() {
    if (!blas) blas = std::make_unique<Blas>();
    return *blas;
  }
};

Compiler::Compiler(const backend::ExecutableRequest& request,
                   std::function<backend::Tensor(const program::View&)> tensor)
    : tensor_(std::move(tensor)),
      context_{request.layout.coordinates(request.rank), request.seed},
      settings_(request.settings),
      tuning_(request.tuning) {
  for (const auto* list : {&request.program->init, &request.program->step}) {
    for (const program::Operation& op : *list) {
      const std::int64_t needed = std::visit([&](const auto& action) { return scratch_for(action); }, op.action);
      scratch_of_[op.stream] = std::max(scratch_of_[op.stream], needed);
    }
  }
}

Compiler::~Compiler() = default;

Compiler::OfStream& Compiler::of_stream(program::StreamId stream) {
  auto& own = streams_[stream];
  if (!own) {
    own = std::make_unique<OfStream>();
    own->scratch = Memory(Memory::Kind::device, scratch_of_[stream] * program::size_of(program::DType::f32),
                          "scratch of own kernels");
    own->context = context_;
    own->context.scratch = reinterpret_cast<float*>(own->scratch.data());
  }
  return *own;
}

template <class Op>
std::int64_t Compiler::scratch_for(const Op& op) const {
  if constexpr (std::is_same_v<Op, program::Matmul>)
    return Blas::scratch_floats(product_of(backend::bind(op, tensor_), tf32()));
  if constexpr (requires { scratch_floats(op); }) return scratch_floats(op);
  return 0;
}

void Compiler::warn_once(const std::string& text) {
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(text);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::Matmul>& op, OfStream& own) {
  const Product product = product_of(op, tf32());
  const Operands operands{op.a,       op.b,      op.bias, op.add, op.aux, op.out, op.bias_gradient, own.context.scratch,
                          op.a_scale, op.b_scale};
  Blas& blas = own.products();
  if (tuning_) {
    const auto tuned = tuning_->find(key_of(product));
    if (tuned != tuning_->end()) {
      const ProductChoice choice = parse_choice(tuned->second);
      if (choice.rejected > 0) {
        warn_once(fmt::format(
            "{} of cuBLASLt's proposals for {} did not compute what its plain product does; they were not chosen",
            choice.rejected, key_of(product)));
      }
      return blas.prepare(product, operands, choice);
    }
    // Where tuning was done at all, what it left out should be known.
    if (!tuning_->empty()) {
      warn_once(
          "Some matrix products were not tuned and use cuBLASLt's first proposal; /tuning lists the tuned ones. With "
          "more free GPU memory, all of them can be timed.");
    }
  }
  const ProductChoice choice = blas.default_choice(product, operands);
  for (const std::string& refusal : blas.refusals()) warn_once(refusal + "; it runs as separate kernels");
  return blas.prepare(product, operands, choice);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::Attention>& op, OfStream& own) {
  return attention({op.shape, op.q.type, op.probabilities.present(), op.documents}, own).forward(op);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::AttentionBackward>& op, OfStream& own) {
  return attention({op.shape, op.q.type, op.probabilities.present(), op.documents}, own).backward(op);
}

AttentionKernel& Compiler::attention(const AttentionForm& form, OfStream& own) {
  auto& kernel = own.attention[form];
  if (kernel) return *kernel;
  const program::AttentionShape& shape = form.shape;
  bool fused = settings_.attention == config::AttentionKind::fused && !form.keeps_probabilities;
  const FusedShape fused_shape{shape, form.type, form.documents};
  if (const std::string why = fused ? fused_attention_unavailable(fused_shape) : ""; !why.empty()) {
    fused = false;
    warn_once("attention ran unfused: " + why);
  }
  kernel = fused ? make_fused_attention(fused_shape, settings_.attention_engine)
                 : make_unfused_attention(shape, form.type, tf32(), form.keeps_probabilities, own.products());
  return *kernel;
}

Compiler::Run Compiler::compile(const program::Operation& operation) {
  OfStream& own = of_stream(operation.stream);
  return std::visit(
      [&]<class Op>(const Op& op) -> Run {
        if constexpr (requires(backend::Bound<Op> bound) { prepare(bound, own); }) {
          return prepare(backend::bind(op, tensor_), own);
        } else if constexpr (requires(Stream s, backend::Bound<Op> bound) { run(s, bound, own.context); }) {
          return [bound = backend::bind(op, tensor_), context = own.context](Stream s) { run(s, bound, context); };
        } else {
          fail("{}: not a compute operation", Op::name);
        }
      },
      operation.action);
}

}  // namespace harness::cuda
