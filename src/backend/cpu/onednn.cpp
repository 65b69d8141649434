#include "backend/cpu/onednn.h"

#include <omp.h>

#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "backend/cpu/kernels.h"
#include "base/text.h"

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
    case program::DType::f16:  // WideCopy
    case program::DType::e4m3:
    case program::DType::e5m2:  // compile.cpp makes bf16 of them
    case program::DType::e8m0:
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

// An f32 copy of a matrix of f16, which oneDNN 2 does not multiply on CPUs, and oneDNN 3 on few. It lies in the
// workspace, the contiguous elements as they are.
class WideCopy {
 public:
  WideCopy() = default;
  /// Makes `matrix` the form of the copy and `workspace_bytes` larger by it, where the matrix has f16 elements.
  WideCopy(MatrixForm& matrix, std::int64_t batch, std::int64_t rows, std::int64_t columns,
           std::size_t& workspace_bytes)
      : batch_(batch), of_(matrix), offset_(workspace_bytes) {
    if (matrix.type != program::DType::f16) return;
    const bool by_rows = matrix.column_stride == 1;
    lines_ = by_rows ? rows : columns;
    length_ = by_rows ? columns : rows;
    between_lines_ = by_rows ? matrix.row_stride : matrix.column_stride;
    matrix = {program::DType::f32, by_rows ? length_ : 1, by_rows ? 1 : length_, lines_ * length_};
    constexpr std::size_t alignment = 64;
    const std::size_t bytes = batch * lines_ * length_ * sizeof(float);
    workspace_bytes += (bytes + alignment - 1) / alignment * alignment;
  }

  /// Where the product finds the matrix or what it adds up to: the copy, or `matrix` itself.
  void* at(void* matrix, void* workspace) const {
    return lines_ == 0 || matrix == nullptr ? matrix : static_cast<std::byte*>(workspace) + offset_;
  }
  void fill(void* matrix, void* workspace) const { convert(matrix, workspace, true); }
  void write_back(void* matrix, void* workspace) const { convert(matrix, workspace, false); }

 private:
  void convert(void* matrix, void* workspace, bool widens) const {
    if (lines_ == 0 || matrix == nullptr) return;
    auto* wide = static_cast<float*>(at(matrix, workspace));
    for (std::int64_t line = 0; line < batch_ * lines_; ++line, wide += length_) {
      auto* narrow = static_cast<f16*>(matrix) + line / lines_ * of_.batch_stride + line % lines_ * between_lines_;
      const backend::Tensor of_copy{wide, program::DType::f32, length_}, stored{narrow, program::DType::f16, length_};
      run(widens ? backend::Bound<program::Convert>{stored, of_copy}
                 : backend::Bound<program::Convert>{of_copy, stored});
    }
  }

  std::int64_t batch_ = 0, lines_ = 0, length_ = 0, between_lines_ = 0;  // lines_ 0: there is no copy
  MatrixForm of_;
  std::size_t offset_ = 0;
};

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
  struct {
    WideCopy a, b, bias, add, out;
  } copies;
  std::size_t scratch_offset = 0;  // in the workspace, behind the copies
  bool accumulate = false;
  dnnl_exec_arg_t arguments[6]{};
  int argument_count = 0;

  void argument(int index, const memory& m) { arguments[argument_count++] = {index, m.get()}; }
};

Product::Product(const ProductForm& stored, Workspace& workspace) {
  ProductForm form = stored;
  MatrixForm bias{form.bias_type, form.n, 1, form.n}, add = form.out;
  std::size_t bytes = 0;
  const WideCopy of_a(form.a, form.batch, form.m, form.k, bytes), of_b(form.b, form.batch, form.k, form.n, bytes),
      of_bias(bias, form.bias ? 1 : 0, 1, form.n, bytes), of_add(add, form.add ? form.batch : 0, form.m, form.n, bytes),
      of_out(form.out, form.batch, form.m, form.n, bytes);
  form.bias_type = bias.type;
  state_.reset(new State(compiled(form)));
  const Descriptors d = descriptors_of(form);
  const auto placeless = [](const memory::desc& desc) { return memory(desc, engine(), DNNL_MEMORY_NONE); };
  State& s = *state_;
  s.workspace = &workspace;
  s.copies = {of_a, of_b, of_bias, of_add, of_out};
  s.scratch_offset = bytes;
  s.accumulate = form.accumulate;
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
  if (bytes + scratch.get_size() > 0) workspace.reserve(bytes + scratch.get_size());
  if (scratch.get_size() > 0) {
    s.scratch = placeless(scratch);
    s.argument(DNNL_ARG_SCRATCHPAD, s.scratch);
  }
}

Product::~Product() = default;
Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;

void Product::operator()(const void* a, const void* b, void* out, const void* bias, const void* add) {
  State& s = *state_;
  void* const workspace = s.workspace->data();
  const auto point = [&](const memory& m, const WideCopy& copy, const void* to, bool is_read = true) {
    if (m.get(true) == nullptr) return;
    void* const matrix = const_cast<void*>(to);
    if (is_read) copy.fill(matrix, workspace);
    dnnl_memory_set_data_handle(m.get(), copy.at(matrix, workspace));
  };
  point(s.a, s.copies.a, a);
  point(s.b, s.copies.b, b);
  point(s.bias, s.copies.bias, bias);
  point(s.add, s.copies.add, add);
  point(s.out, s.copies.out, out, s.accumulate);
  point(s.scratch, {}, static_cast<std::byte*>(workspace) + s.scratch_offset);
  const auto status = dnnl_primitive_execute(s.code.primitive.get(), s.stream.get(), s.argument_count, s.arguments);
  if (status != dnnl_success) fail("oneDNN reports error {} in a matrix product", static_cast<int>(status));
  s.copies.out.write_back(out, workspace);
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
