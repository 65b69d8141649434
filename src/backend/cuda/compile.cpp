#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "backend/cuda/attention.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

// Shared by the operations of one stream, which run one after the other.
struct OfStream {
  std::unique_ptr<Blas> blas;  // made for the first product
  Memory scratch;
  backend::KernelContext context;
  std::map<AttentionForm, std::unique_ptr<AttentionKernel>> attention;

  Blas& products() {
    if (!blas) blas = std::make_unique<Blas>();
    return *blas;
  }
};

// make_compiler() returns a function that calls this.
class CompilerState {
 public:
  using Run = std::function<void(Stream)>;

  CompilerState(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor,
                std::vector<std::string>& warnings)
      : tensor_(std::move(tensor)),
        settings_(request.settings),
        tuning_(request.tuning),
        trains_(std::ranges::any_of(request.program->step, is_attention_backward)),
        warnings_(warnings) {
    std::map<program::StreamId, std::int64_t> floats;
    for (const auto* list : {&request.program->init, &request.program->step}) {
      for (const program::Operation& op : *list) {
        std::int64_t& most = floats[op.stream];
        std::visit(
            [&](const auto& action) {
              if constexpr (requires { scratch_floats(action); }) most = std::max(most, scratch_floats(action));
            },
            op.action);
      }
    }
    for (const auto& [stream, count] : floats) {
      OfStream& own = streams_[stream];
      own.scratch =
          Memory(Memory::Kind::device, count * program::size_of(program::DType::f32), "scratch of own kernels");
      own.context = {request.layout.coordinates(request.rank), request.seed,
                     reinterpret_cast<float*>(own.scratch.data())};
    }
  }

  Run compile(const program::Operation& operation) {
    OfStream& own = streams_.at(operation.stream);
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

 private:
  static bool is_attention_backward(const program::Operation& op) {
    return std::holds_alternative<program::AttentionBackward>(op.action);
  }
  bool tf32() const { return settings_.precision == config::Precision::tf32; }

  void warn_once(const std::string& text) {
    if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(text);
  }

  Run prepare(const backend::Bound<program::Matmul>& op, OfStream& own) {
    Product product(op, tf32());
    product.scratch = own.context.scratch;
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
        return blas.prepare(product, choice);
      }
      // If tuning ran, the results say that it left something out.
      if (!tuning_->empty()) {
        warn_once(
            "Some matrix products were not tuned and use cuBLASLt's first proposal; /tuning lists the tuned ones. With "
            "more free GPU memory, all of them can be timed.");
      }
    }
    const ProductChoice choice = blas.default_choice(product);
    for (const std::string& refusal : blas.refusals()) warn_once(refusal + "; it runs as separate kernels");
    return blas.prepare(product, choice);
  }

  Run prepare(const backend::Bound<program::Attention>& op, OfStream& own) {
    return attention({op.shape, op.q.type, op.documents, op.probabilities.present()}, own).forward(op);
  }

  Run prepare(const backend::Bound<program::AttentionBackward>& op, OfStream& own) {
    return attention({op.shape, op.q.type, op.documents, op.probabilities.present()}, own).backward(op);
  }

  AttentionKernel& attention(const AttentionForm& form, OfStream& own) {
    auto& kernel = own.attention[form];
    if (kernel) return *kernel;
    bool fused = settings_.attention == config::AttentionKind::fused && !form.keeps_probabilities;
    if (const std::string why = fused ? fused_attention_unavailable(form, trains_) : ""; !why.empty()) {
      fused = false;
      warn_once("attention ran unfused: " + why);
    }
    kernel = fused ? make_fused_attention(form, settings_.attention_engine)
                   : make_unfused_attention(form, tf32(), own.products());
    return *kernel;
  }

  std::function<backend::Tensor(const program::View&)> tensor_;
  config::Settings settings_;
  std::shared_ptr<const backend::Tuning> tuning_;
  bool trains_;  // some attention has a backward pass
  std::map<program::StreamId, OfStream> streams_;
  std::vector<std::string>& warnings_;
};

}  // namespace

Compiler make_compiler(const backend::ExecutableRequest& request,
                       const std::function<backend::Tensor(const program::View&)>& tensor,
                       std::vector<std::string>& warnings) {
  const auto state = std::make_shared<CompilerState>(request, tensor, warnings);
  return [state](const program::Operation& operation) { return state->compile(operation); };
}

}  // namespace harness::cuda
