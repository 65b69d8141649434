#include "backend/cuda/compile.h"

#include <algorithm>
#include <utility>

#include "backend/cuda/attention_tuner.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/programmatic.h"
#include "base/error.h"

namespace harness::cuda {
struct Compiler::OfStream {
  std::unique_ptr<Blas> blas;  // where there are products
  Memory scratch;
  backend::KernelContext context;
  std::map<AttentionForm, std::unique_ptr<AttentionKernel>> attention;
  std::int64_t norm_scratch_bytes = 0;
  std::vector<Memory> norm_scratch;    // [i]: of the i-th LayerNormBackward of those that wait for a second stage
  std::vector<PartialSums> norm_sums;  // of those that wait, while operations are compiled

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
      const bool norm = std::holds_alternative<program::LayerNormBackward>(op.action) ||
                        std::holds_alternative<program::RmsNormBackward>(op.action);
      if (!norm) continue;
      norm_scratch_of_[op.stream] = std::max(norm_scratch_of_[op.stream], needed);
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
    own->norm_scratch_bytes = norm_scratch_of_[stream] * program::size_of(program::DType::f32);
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

std::int64_t Compiler::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [stream, own] : streams_) {
    bytes += own->scratch.bytes() + (own->blas ? Blas::workspace_bytes : 0);
    for (const Memory& scratch : own->norm_scratch) bytes += scratch.bytes();
    for (const auto& [form, kernel] : own->attention) bytes += kernel->workspace_bytes();
  }
  return bytes;
}

void Compiler::warn_once(const std::string& text) {
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(text);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::Matmul>& op, OfStream& own, const LaunchPlan& plan) {
  Product product = product_of(op, tf32());
  product.multiprocessors = plan.multiprocessors;
  const Operands operands{op.a, op.b, op.bias, op.add, op.aux, op.out, op.bias_gradient, own.context.scratch};
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

Compiler::Run Compiler::prepare(const backend::Bound<program::Attention>& op, OfStream& own,
                                const LaunchPlan& /*plan*/) {
  return attention({op.shape, op.q.type, op.probabilities.present()}, own).forward(op);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::AttentionBackward>& op, OfStream& own,
                                const LaunchPlan& /*plan*/) {
  return attention({op.shape, op.q.type, op.probabilities.present()}, own).backward(op);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::LayerNormBackward>& op, OfStream& own,
                                const LaunchPlan& plan) {
  return norm_backward(op, own, plan);
}

Compiler::Run Compiler::prepare(const backend::Bound<program::RmsNormBackward>& op, OfStream& own,
                                const LaunchPlan& plan) {
  return norm_backward(op, own, plan);
}

// One that leaves its second stage to the next keeps its partial sums in memory of its own until then.
template <class Op>
Compiler::Run Compiler::norm_backward(const Op& op, OfStream& own, const LaunchPlan& plan) {
  backend::KernelContext context = own.context;
  if (plan.sums_later) {
    const std::size_t place = own.norm_sums.size();
    if (place == own.norm_scratch.size()) {
      own.norm_scratch.emplace_back(Memory::Kind::device, own.norm_scratch_bytes, "partial sums of norm gradients");
    }
    context.scratch = reinterpret_cast<float*>(own.norm_scratch[place].data());
  }
  own.norm_sums.push_back(partial_sums(op, context));
  if (plan.sums_later) return [op, context](Stream s) { run_first_stage(s, op, context); };
  return [op, context, sums = std::exchange(own.norm_sums, {})](Stream s) {
    run_first_stage(s, op, context);
    run_second_stages(s, sums);
  };
}

AttentionKernel& Compiler::attention(const AttentionForm& form, OfStream& own) {
  auto& kernel = own.attention[form];
  if (kernel) return *kernel;
  const program::AttentionShape& shape = form.shape;
  bool fused = settings_.attention == config::AttentionKind::fused && !form.keeps_probabilities;
  if (const std::string why = fused_attention_unavailable(shape, form.type); fused && !why.empty()) {
    fused = false;
    warn_once("attention ran unfused: " + why);
  }
  AttentionEngines engines{settings_.attention_engine, settings_.attention_engine};
  if (fused && tuning_ && settings_.attention_engine < 0) {
    if (const auto tuned = tuning_->find(key_of(shape)); tuned != tuning_->end()) {
      const AttentionChoice choice = parse_attention(tuned->second);
      engines = choice.engines;
      if (choice.rejected > 0) {
        warn_once(
            fmt::format("{} of cuDNN's kernels for {} did not compute what its first one does; they were not chosen",
                        choice.rejected, key_of(shape)));
      }
    }
  }
  kernel = fused ? make_fused_attention(shape, form.type, engines)
                 : make_unfused_attention(shape, form.type, tf32(), form.keeps_probabilities, own.products());
  return *kernel;
}

Compiler::Run Compiler::compile(const program::Operation& operation, const LaunchPlan& plan) {
  Run launches = launches_of(operation, plan);
  if (!plan.programmatic) return launches;
  return [launches = std::move(launches)](Stream s) {
    const ProgrammaticLaunches programmatic(true);
    launches(s);
  };
}

Compiler::Run Compiler::launches_of(const program::Operation& operation, const LaunchPlan& plan) {
  OfStream& own = of_stream(operation.stream);
  backend::KernelContext context = own.context;
  context.multiprocessors = plan.multiprocessors;
  return std::visit(
      [&]<class Op>(const Op& op) -> Run {
        if constexpr (requires(backend::Bound<Op> bound) { prepare(bound, own, plan); }) {
          return prepare(backend::bind(op, tensor_), own, plan);
        } else if constexpr (requires(Stream s, backend::Bound<Op> bound) { run(s, bound, context); }) {
          return [bound = backend::bind(op, tensor_), context](Stream s) { run(s, bound, context); };
        } else {
          fail("{}: not a compute operation", Op::name);
        }
      },
      operation.action);
}

}  // namespace harness::cuda
