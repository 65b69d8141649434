#include "backend/cpu/onednn.h"

#include <omp.h>

#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace harness::cpu {
namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

memory::data_type type_of(program::DType type) {
  switch (type) {
    case program::DType::f32:
      return memory::data_type::f32;
    case program::DType::bf16:
      return memory::data_type::bf16;
    case program::DType::i32:
    case program::DType::f16:  // its other kernels have no f16
    case program::DType::e4m3:
    case program::DType::e5m2:  // compile.cpp makes bf16 of them
      break;
  }
  fail("the cpu backend has no matrix products of this type of elements");
}

memory::desc desc_of(const MatrixForm& f, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  if (batch == 1) return {{rows, columns}, type_of(f.type), memory::dims{f.row_stride, f.column_stride}};
  return {{batch, rows, columns}, type_of(f.type), memory::dims{f.batch_stride, f.row_stride, f.column_stride}};
}

struct Descriptors {
  memory::desc a, b, bias, out;
};

Descriptors descriptors_of(const ProductForm& f) {
  Descriptors d{
      desc_of(f.a, f.batch, f.m, f.k), desc_of(f.b, f.batch, f.k, f.n), {}, desc_of(f.out, f.batch, f.m, f.n)};
  if (f.bias) d.bias = desc_of({f.bias_type, f.n, 1, f.n}, f.batch, 1, f.n);
  return d;
}

dnnl::matmul::primitive_desc make(const ProductForm& f) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const Descriptors d = descriptors_of(f);
  dnnl::post_ops ops;
  if (f.accumulate) ops.append_sum(1.0f);
  if (f.add) ops.append_binary(dnnl::algorithm::binary_add, d.out);
  attributes.set_post_ops(ops);
#if DNNL_VERSION_MAJOR >= 3
  if (f.bias) return {engine(), d.a, d.b, d.bias, d.out, attributes};
  return {engine(), d.a, d.b, d.out, attributes};
#else
  if (f.bias) return {dnnl::matmul::desc(d.a, d.b, d.bias, d.out), attributes, engine()};
  return {dnnl::matmul::desc(d.a, d.b, d.out), attributes, engine()};
#endif
}

// Generating code takes milliseconds; equal products share it.
struct Compiled {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

Compiled compiled(const ProductForm& form) {
  static std::mutex mutex;
  static std::map<std::pair<ProductForm, int>, Compiled> cache;
  const std::lock_guard lock(mutex);
  const auto key = std::pair(form, omp_get_max_threads());
  if (const auto it = cache.find(key); it != cache.end()) return it->second;
  try {
    const auto description = make(form);
    return cache.emplace(key, Compiled{description, dnnl::matmul(description)}).first->second;
  } catch (const dnnl::error& e) {
    fail("oneDNN {} cannot multiply [{}, {}] by [{}, {}] ({}): {}", onednn_version(), form.m, form.k, form.k, form.n,
         form.a.type == program::DType::bf16 ? "bf16" : "fp32", e.what());
  }
}

}  // namespace

void* Workspace::reserve(std::size_t bytes) {
  if (bytes > bytes_) {
    std::free(data_);
    bytes_ = (bytes + 4095) / 4096 * 4096;
    data_ = std::aligned_alloc(4096, bytes_);
    if (data_ == nullptr) {
      bytes_ = 0;
      throw std::bad_alloc();
    }
  }
  return data_;
}

Workspace::~Workspace() {
  std::free(data_);
}

struct Product::State {
  explicit State(Compiled c) : code(std::move(c)) {}
  Compiled code;
  dnnl::stream stream{engine()};
  Workspace* workspace = nullptr;
  memory a, b, bias, add, out, scratch;
  dnnl_exec_arg_t arguments[6]{};
  int argument_count = 0;

  void argument(int index, const memory& m) { arguments[argument_count++] = {index, m.get()}; }
};

Product::Product(const ProductForm& form, Workspace& workspace) : state_(new State(compiled(form))) {
  const Descriptors d = descriptors_of(form);
  const auto placeless = [](const memory::desc& desc) { return memory(desc, engine(), DNNL_MEMORY_NONE); };
  State& s = *state_;
  s.workspace = &workspace;
  s.a = placeless(d.a);
  s.b = placeless(d.b);
  s.out = placeless(d.out);
  s.argument(DNNL_ARG_SRC, s.a);
  s.argument(DNNL_ARG_WEIGHTS, s.b);
  s.argument(DNNL_ARG_DST, s.out);
  if (form.bias) {
    s.bias = placeless(d.bias);
    s.argument(DNNL_ARG_BIAS, s.bias);
  }
  if (form.add) {
    s.add = placeless(d.out);
    s.argument(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, s.add);
  }
  const auto scratch = s.code.description.scratchpad_desc();
  if (scratch.get_size() > 0) {
    workspace.reserve(scratch.get_size());
    s.scratch = placeless(scratch);
    s.argument(DNNL_ARG_SCRATCHPAD, s.scratch);
  }
}

Product::~Product() = default;
Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;

void Product::operator()(const void* a, const void* b, void* out, const void* bias, const void* add) {
  State& s = *state_;
  const auto point = [](const memory& m, const void* to) {
    if (m.get(true) != nullptr) dnnl_memory_set_data_handle(m.get(), const_cast<void*>(to));
  };
  point(s.a, a);
  point(s.b, b);
  point(s.bias, bias);
  point(s.add, add);
  point(s.out, out);
  point(s.scratch, s.workspace->data());
  const auto status = dnnl_primitive_execute(s.code.primitive.get(), s.stream.get(), s.argument_count, s.arguments);
  if (status != dnnl_success) fail("oneDNN reports error {} in a matrix product", static_cast<int>(status));
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::string onednn_instruction_set() {
  using dnnl::cpu_isa;
  static constexpr std::array<std::pair<cpu_isa, const char*>, 8> names{
      {{cpu_isa::sse41, "sse41"},
       {cpu_isa::avx, "avx"},
       {cpu_isa::avx2, "avx2"},
       {cpu_isa::avx2_vnni, "avx2_vnni"},
       {cpu_isa::avx512_core, "avx512_core"},
       {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
       {cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
       {cpu_isa::avx512_core_amx, "avx512_core_amx"}}};
  const cpu_isa isa = dnnl::get_effective_cpu_isa();
  for (const auto& [known, name] : names) {
    if (known == isa) return name;
  }
  return fmt::format("isa {:#x}", static_cast<unsigned>(isa));
}

bool has_native_bf16() {
  // oneDNN numbers its instruction sets so that one that contains another has its bits.
  const auto have = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto need = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (have & need) == need;
}

}  // namespace harness::cpu
