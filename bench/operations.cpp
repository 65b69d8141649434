// The operations that a GPT step spends its time in, at model shapes, through the whole backend: one rank, one thread
// unless BENCH_THREADS says otherwise. Compare rows by their FLOP/s; the arguments are named in each benchmark.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

#include "backend/backend.h"
#include "backends/backends.h"
#include "program/builder.h"
#include "program/count.h"

namespace harness {
namespace {

int threads() {
  const char* text = std::getenv("BENCH_THREADS");
  return text != nullptr ? std::atoi(text) : 1;
}

class NoInputs : public program::InputSource {
 public:
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

// Runs the one operation that `make` adds to a Program, over buffers of random numbers.
template <class Make>
void run(benchmark::State& state, Make&& make) {
  program::ProgramBuilder b({"compute"});
  std::vector<program::View> buffers;
  const program::Action action = make([&](program::DType type, std::int64_t count) {
    buffers.push_back(b.buffer("buffer", type, count, program::BufferKind::persistent));
    return buffers.back();
  });
  for (const program::View& v : buffers)
    b.emit(0, program::Initialize{v, v.buffer * (1 << 28), program::Axis::tensor, 1, v.count, v.count, 1, 0, 1}, {});
  b.begin_step();
  b.emit(0, action, {});
  const program::Program program = b.take();
  backend::ExecutableRequest request;
  request.program = &program;
  request.threads = threads();
  const auto executable = backends::get(config::BackendKind::cpu).create(request);
  executable->publish();
  executable->connect({}, 1);
  executable->initialize();
  executable->run(0, 2, NoInputs{});
  std::int64_t step = 2;
  for (auto _ : state) executable->run(step++, 1, NoInputs{});
  const double flop = program::flop_of(action).model * static_cast<double>(state.iterations());
  if (flop > 0) state.counters["FLOP/s"] = benchmark::Counter(flop, benchmark::Counter::kIsRate);
  const double bytes = program::bytes_touched(program, action) * static_cast<double>(state.iterations());
  state.counters["B/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsRate);
}

program::DType type_of(std::int64_t bf16) {
  return bf16 != 0 ? program::DType::bf16 : program::DType::f32;
}

// Rows of tokens; a weight is [outputs, inputs], as in the model.
void forward_product(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0));
    program::Matmul op;
    op.m = state.range(1);
    op.n = state.range(2);
    op.k = state.range(3);
    op.transpose_b = true;
    op.a = buffer(t, op.m * op.k);
    op.b = buffer(t, op.k * op.n);
    op.out = buffer(t, op.m * op.n);
    return op;
  });
}
void input_gradient(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0));
    program::Matmul op;
    op.m = state.range(1);
    op.n = state.range(3);
    op.k = state.range(2);
    op.a = buffer(t, op.m * op.k);
    op.b = buffer(t, op.k * op.n);
    op.out = buffer(t, op.m * op.n);
    return op;
  });
}
void weight_gradient(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0));
    program::Matmul op;
    op.m = state.range(2);
    op.n = state.range(3);
    op.k = state.range(1);
    op.transpose_a = true;
    op.accumulate = true;
    op.a = buffer(t, op.m * op.k);
    op.b = buffer(t, op.k * op.n);
    op.out = buffer(program::DType::f32, op.m * op.n);
    return op;
  });
}
void product_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"bf16", "tokens", "outputs", "inputs"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const int bf16 : {0, 1}) {
    b->Args({bf16, 2048, 512, 512})->Args({bf16, 2048, 1536, 512})->Args({bf16, 2048, 2048, 512});
    b->Args({bf16, 2048, 512, 2048})->Args({bf16, 2048, 8192, 512})->Args({bf16, 2048, 4096, 1024});
  }
}
BENCHMARK(forward_product)->Apply(product_shapes);
BENCHMARK(input_gradient)->Apply(product_shapes);
BENCHMARK(weight_gradient)->Apply(product_shapes);

program::AttentionShape shape_of(const benchmark::State& state) {
  const std::int64_t heads = state.range(2), head_dim = state.range(3), length = state.range(4);
  return {state.range(1), heads, head_dim, length, length, 3 * heads * head_dim, 3 * heads * head_dim, true};
}
void attention(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::AttentionShape s = shape_of(state);
    const program::DType t = type_of(state.range(0));
    const std::int64_t width = s.heads * s.head_dim, rows = s.batch * s.query_length, span = (3 * rows - 2) * width;
    const program::View qkv = buffer(t, rows * 3 * width);
    return program::Attention{qkv.part(0, span),
                              qkv.part(width, span),
                              qkv.part(2 * width, span),
                              buffer(t, rows * width),
                              buffer(program::DType::f32, rows * s.heads),
                              s};
  });
}
void attention_backward(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::AttentionShape s = shape_of(state);
    const program::DType t = type_of(state.range(0));
    const std::int64_t width = s.heads * s.head_dim, rows = s.batch * s.query_length, span = (3 * rows - 2) * width;
    const program::View qkv = buffer(t, rows * 3 * width), d = buffer(t, rows * 3 * width),
                        out = buffer(t, rows * width);
    const program::View stats = buffer(program::DType::f32, rows * s.heads), dout = buffer(t, rows * width);
    return program::AttentionBackward{
        qkv.part(0, span), qkv.part(width, span), qkv.part(2 * width, span), out, stats, dout,
        d.part(0, span),   d.part(width, span),   d.part(2 * width, span),   s};
  });
}
void attention_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"bf16", "batch", "heads", "head_dim", "length"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const int bf16 : {0, 1})
    b->Args({bf16, 4, 8, 64, 512})->Args({bf16, 1, 16, 64, 1024})->Args({bf16, 1, 8, 128, 2048});
}
BENCHMARK(attention)->Apply(attention_shapes);
BENCHMARK(attention_backward)->Apply(attention_shapes);

void layer_norm(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0));
    const std::int64_t rows = state.range(1), width = state.range(2), n = rows * width;
    return program::LayerNorm{buffer(t, n),
                              buffer(t, width),
                              buffer(t, n),
                              buffer(t, width),
                              buffer(t, width),
                              buffer(t, n),
                              buffer(t, n),
                              buffer(program::DType::f32, rows),
                              buffer(program::DType::f32, rows),
                              rows,
                              width};
  });
}
void layer_norm_backward(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0)), f = program::DType::f32;
    const std::int64_t rows = state.range(1), width = state.range(2), n = rows * width;
    return program::LayerNormBackward{buffer(t, n),
                                      buffer(t, n),
                                      buffer(t, width),
                                      buffer(f, rows),
                                      buffer(f, rows),
                                      buffer(t, n),
                                      buffer(t, n),
                                      buffer(f, width),
                                      buffer(f, width),
                                      buffer(f, width),
                                      rows,
                                      width,
                                      false};
  });
}
void gelu(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const program::DType t = type_of(state.range(0));
    const std::int64_t n = state.range(1) * state.range(2);
    return program::Gelu{buffer(t, n), buffer(t, n)};
  });
}
void row_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"bf16", "rows", "width"})->Unit(benchmark::kMicrosecond)->UseRealTime();
  for (const int bf16 : {0, 1}) b->Args({bf16, 2048, 512})->Args({bf16, 2048, 2048});
}
BENCHMARK(layer_norm)->Apply(row_shapes);
BENCHMARK(layer_norm_backward)->Apply(row_shapes);
BENCHMARK(gelu)->Apply(row_shapes);

void adamw(benchmark::State& state) {
  run(state, [&](auto&& buffer) {
    const std::int64_t n = state.range(0);
    const program::DType f = program::DType::f32;
    return program::AdamW{buffer(f, n), buffer(f, n), buffer(f, n), buffer(f, n), {}, buffer(f, 1), buffer(f, 1)};
  });
}
BENCHMARK(adamw)->ArgName("parameters")->Arg(1 << 22)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace harness
