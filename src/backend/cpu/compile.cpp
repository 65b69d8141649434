#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/attention.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"

namespace harness::cpu {
namespace {

// A stored row-major matrix of `columns` columns, seen as it is or transposed.
MatrixForm matrix(program::DType type, std::int64_t columns, bool transposed) {
  return transposed ? MatrixForm{type, 1, columns, 0} : MatrixForm{type, columns, 1, 0};
}

// Elements of the factors of the largest product of 8-bit floats.
std::array<std::int64_t, 2> fp8_elements(const program::Program& program) {
  std::array<std::int64_t, 2> most{};
  for (const program::Operation& operation : program.step) {
    const auto* m = std::get_if<program::Matmul>(&operation.action);
    if (m == nullptr || !m->a_scale.present()) continue;
    most = {std::max(most[0], m->a.count), std::max(most[1], m->b.count)};
  }
  return most;
}

std::size_t scratch_for(const program::Program& program, int threads) {
  std::int64_t floats = 0;
  const auto add = [&](const auto& op) {
    if constexpr (requires { scratch_floats(op, threads); }) floats = std::max(floats, scratch_floats(op, threads));
  };
  for (const auto* list : {&program.init, &program.step}) {
    for (const program::Operation& operation : *list) std::visit(add, operation.action);
  }
  return floats;
}

class CompilerState {
 public:
  CompilerState(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor)
      : tensor_(std::move(tensor)),
        threads_(request.threads),
        scratch_(scratch_for(*request.program, request.threads)),
        context_{request.layout.coordinates(request.rank), request.seed, scratch_.data()} {
    const auto elements = fp8_elements(*request.program);
    for (std::size_t i = 0; i < wide_.size(); ++i) wide_[i].resize(elements[i]);
  }

  std::function<void()> compile(const program::Operation& operation) {
    return std::visit(
        [&]<class Op>(const Op& op) -> Run {
          if constexpr (requires(backend::Bound<Op> bound) { prepare(bound); }) {
            if (operation.stream != 0) {
              fail("{} is on stream {}: the cpu backend multiplies on the compute stream only",
                   program::title(operation), operation.stream);
            }
            return prepare(backend::bind(op, tensor_));
          } else if constexpr (requires(backend::Bound<Op> bound) { run(bound, context_); }) {
            return [bound = backend::bind(op, tensor_), context = context_] { run(bound, context); };
          } else {
            fail("{}: not a compute operation", Op::name);
          }
        },
        operation.action);
  }

 private:
  using Run = std::function<void()>;

  // oneDNN computes the product with `bias` and `add`; GELU and the bias gradient run as separate kernels.
  Run prepare(const backend::Bound<program::Matmul>& op) {
    if (program::is_fp8(op.a.type)) return prepare_widened(op);
    const backend::Tensor to = op.epilogue == program::Epilogue::gelu ? op.aux : op.out;
    const ProductForm form{.batch = 1,
                           .m = op.m,
                           .n = op.n,
                           .k = op.k,
                           .a = matrix(op.a.type, op.transpose_a ? op.m : op.k, op.transpose_a),
                           .b = matrix(op.b.type, op.transpose_b ? op.k : op.n, op.transpose_b),
                           .out = matrix(to.type, op.n, false),
                           .bias = op.bias.present(),
                           .bias_type = op.bias ? op.bias.type : program::DType::f32,
                           .add = op.add.present(),
                           .accumulate = op.accumulate};
    return [multiply = Product(form, workspace_), op, to] {
      multiply(op.a.data, op.b.data, to.data, op.bias.data, op.add.data);
      if (op.epilogue == program::Epilogue::gelu) run(backend::Bound<program::Gelu>{op.aux, op.out});
      if (op.epilogue == program::Epilogue::gelu_backward) run(backend::Bound<program::GeluBackward>{op.aux, op.out});
      if (op.bias_gradient) run(backend::Bound<program::ColumnSum>{op.a, op.bias_gradient, op.k, op.m, op.accumulate});
    };
  }

  // CPUs do not multiply 8-bit floats: they are widened to bf16, which represents each code times its scale exactly.
  Run prepare_widened(const backend::Bound<program::Matmul>& op) {
    backend::Bound<program::Matmul> product = op;
    product.a = {wide_[0].data(), program::DType::bf16, op.a.count};
    product.b = {wide_[1].data(), program::DType::bf16, op.b.count};
    product.a_scale = product.b_scale = {};
    return [multiply = prepare(product), op, product] {
      widen(op.a, op.a_scale, op.k, product.a.as<bf16>());
      widen(op.b, op.b_scale, op.k, product.b.as<bf16>());
      multiply();
    };
  }

  Run prepare(const backend::Bound<program::Attention>& op) {
    return [&kernel = attention(op, false), op] { kernel.forward(op); };
  }

  Run prepare(const backend::Bound<program::AttentionBackward>& op) {
    return [&kernel = attention(op, true), op] { kernel.backward(op); };
  }

  AttentionKernel& attention(const auto& op, bool backward) {
    const AttentionKernel::Form form{op.shape, op.q.type, backward, op.probabilities.present(),
                                     op.position_ids.present()};
    return attention_.try_emplace(form, form, threads_).first->second;
  }

  std::function<backend::Tensor(const program::View&)> tensor_;
  int threads_;
  Workspace workspace_;
  std::vector<float> scratch_;  // the largest that any operation needs: they run one after the other
  backend::KernelContext context_;
  std::map<AttentionKernel::Form, AttentionKernel> attention_;
  std::array<std::vector<bf16>, 2> wide_;  // widened factors of the largest 8-bit product
};

}  // namespace

Compiler make_compiler(const backend::ExecutableRequest& request,
                       std::function<backend::Tensor(const program::View&)> tensor) {
  const auto state = std::make_shared<CompilerState>(request, std::move(tensor));
  return [state](const program::Operation& operation) { return state->compile(operation); };
}

}  // namespace harness::cpu
