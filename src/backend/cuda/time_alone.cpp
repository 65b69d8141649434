#include "backend/cuda/time_alone.h"

#include <algorithm>
#include <map>
#include <string>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/tuner.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

const char* form_of(const Product& product, const ProductChoice& choice) {
  if (!product.composite()) return "plain";
  return choice.fused ? "fused" : "separate";
}

// Random operands of both directions.
class AttentionOperands {
 public:
  AttentionOperands(const program::AttentionShape& s, program::DType type) {
    const std::int64_t queries = s.batch * s.query_length * s.query_stride,
                       keys = s.batch * s.key_length * s.key_stride,
                       dense = s.batch * s.query_length * s.heads * s.head_dim,
                       stats = s.batch * s.heads * s.query_length;
    const auto make = [&](std::int64_t count, program::DType of) {
      memory_.emplace_back(Memory::Kind::device, count * program::size_of(of), "timing attention");
      return backend::Tensor{memory_.back().data(), of, count};
    };
    forward.q = backward.q = make(queries, type);
    forward.k = backward.k = make(keys, type);
    forward.v = backward.v = make(keys, type);
    forward.out = backward.out = make(dense, type);
    forward.stats = backward.stats = make(stats, program::DType::f32);
    backward.dout = make(dense, type);
    backward.dq = make(queries, type);
    backward.dk = make(keys, type);
    backward.dv = make(keys, type);
    forward.shape = backward.shape = s;
  }
  void fill(Stream stream) const {
    std::uint64_t seed = 1;
    for (const backend::Tensor& t : {forward.q, forward.k, forward.v, backward.dout}) fill_random(stream, t, seed++);
  }

  backend::Bound<program::Attention> forward;
  backend::Bound<program::AttentionBackward> backward;

 private:
  std::vector<Memory> memory_;
};

// nullptr: the operation is no attention.
const program::AttentionShape* shape_of(const program::Operation& operation) {
  if (const auto* forward = std::get_if<program::Attention>(&operation.action)) return &forward->shape;
  if (const auto* backward = std::get_if<program::AttentionBackward>(&operation.action)) return &backward->shape;
  return nullptr;
}

}  // namespace

std::vector<backend::AloneTiming> time_products(const program::Program& program, bool tf32,
                                                const backend::Tuning& tuning, std::int64_t l2_bytes, double seconds) {
  const std::vector<NeededProduct> needed = needed_products(program, tf32);
  std::map<std::string, backend::AloneTiming> timed;  // by key
  Blas blas;
  Timer timer;
  for (const NeededProduct& n : needed) {
    const std::string key = key_of(n.product);
    const auto time = [&] {
      const Rotation rotation(n, 2 * l2_bytes);
      rotation.fill(timer.stream());
      const auto tuned = tuning.find(key);
      const ProductChoice choice = tuned != tuning.end() ? parse_choice(tuned->second)
                                                         : blas.default_choice(n.product, rotation.operands().front());
      const double once = timer.sustained(rotation.runs(n.product, blas, choice), seconds / std::ssize(needed));
      timed[key] = {.seconds = once, .form = form_of(n.product, choice)};
    };
    survives(time, [&] { return "while " + key + " was timed alone"; });  // or it is too large beside what is in memory
  }
  std::vector<backend::AloneTiming> timings;
  over_products(program, tf32, [&](const Product& product, const program::Operation& operation) {
    const auto found = timed.find(key_of(product));
    if (found == timed.end()) return;
    timings.push_back(found->second);
    timings.back().operation = static_cast<program::OperationId>(&operation - program.step.data());
  });
  return timings;
}

AttentionSeconds time_attention(AttentionKernel& kernel, const program::AttentionShape& shape, program::DType type,
                                Timer& timer, double seconds) {
  const AttentionOperands at(shape, type);
  at.fill(timer.stream());
  const double forward_s = timer.sustained({kernel.forward(at.forward)}, seconds / 2);
  return {forward_s, timer.sustained({kernel.backward(at.backward)}, seconds / 2)};
}

std::vector<program::AttentionShape> attention_shapes(const program::Program& program) {
  std::vector<program::AttentionShape> shapes;
  for (const program::Operation& operation : program.step) {
    const program::AttentionShape* shape = shape_of(operation);
    if (shape != nullptr && std::ranges::find(shapes, *shape) == shapes.end()) shapes.push_back(*shape);
  }
  return shapes;
}

std::vector<backend::AloneTiming> time_attentions(const backend::ExecutableRequest& request, double seconds) {
  std::vector<backend::AloneTiming> timings;
  constexpr program::DType type = program::DType::bf16;
  if (request.settings.attention != config::AttentionKind::fused) return timings;
  if (config::storage_of(request.settings.precision) != type) return timings;
  std::vector<program::AttentionShape> shapes = attention_shapes(*request.program);
  std::erase_if(shapes, [](const auto& shape) { return !fused_attention_unavailable(shape, type).empty(); });
  std::map<program::AttentionShape, AttentionSeconds> timed;
  Timer timer;
  for (const program::AttentionShape& shape : shapes) {
    const auto time = [&] {
      const auto kernel = make_fused_attention(shape, type, request.settings.attention_engine);
      timed[shape] = time_attention(*kernel, shape, type, timer, seconds / static_cast<double>(shapes.size()));
    };
    // False where memory does not suffice: this shape has no timing then.
    survives(time, [&] { return fmt::format("while fused attention of batch {} was timed alone", shape.batch); });
  }
  for (const program::Operation& operation : request.program->step) {
    const program::AttentionShape* shape = shape_of(operation);
    const auto found = shape == nullptr ? timed.end() : timed.find(*shape);
    if (found == timed.end()) continue;
    const bool forward = std::holds_alternative<program::Attention>(operation.action);
    timings.push_back({static_cast<program::OperationId>(&operation - request.program->step.data()),
                       forward ? found->second.forward : found->second.backward, "fused"});
  }
  return timings;
}

}  // namespace harness::cuda
