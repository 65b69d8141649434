#include "backend/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
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
    case program::DType::f16:  // has a WideCopy
    case program::DType::e4m3:
    case program::DType::e5m2:  // widened to bf16 in compile.cpp
    case program::DType::e8m0:
      break;
  }
  fail("the cpu backend has no matrix products of this type of elements");
}

memory::desc desc_of(const MatrixForm& f, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  if (batch == 1) return {{rows, columns}, type_of(f.type), memory::dims{f.row_stride, f.column_stride}};
  return {{batch, rows, columns}, type_of(f.type), memory::dims{f.batch_stride, f.row_stride, f.column_stride}};
}

dnnl::matmul::primitive_desc make(const ProductForm& f) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc a = desc_of(f.a, f.batch, f.m, f.k), b = desc_of(f.b, f.batch, f.k, f.n),
                     out = desc_of(f.out, f.batch, f.m, f.n);
  memory::desc bias;
  if (f.bias) bias = desc_of({f.bias_type, f.n, 1, f.n}, f.batch, 1, f.n);
  dnnl::post_ops ops;
  if (f.accumulate) ops.append_sum(1.0f);
  if (f.add) ops.append_binary(dnnl::algorithm::binary_add, out);
  attributes.set_post_ops(ops);
#if DNNL_VERSION_MAJOR >= 3
  if (f.bias) return {engine(), a, b, bias, out, attributes};
  return {engine(), a, b, out, attributes};
#else
  if (f.bias) return {dnnl::matmul::desc(a, b, bias, out), attributes, engine()};
  return {dnnl::matmul::desc(a, b, out), attributes, engine()};
#endif
}

// oneDNN numbers instruction sets so that a superset has all bits of its subsets.
bool makes_code_for(dnnl::cpu_isa isa) {
  const auto have = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), need = static_cast<unsigned>(isa);
  return (have & need) == need;
}

// oneDNN 2 does not multiply f16 matrices on CPUs, and oneDNN 3 on few. Both multiply bf16 matrices with AVX-512 only
// (or, from version 3, with the AVX2 extension of a few client CPUs).
bool multiplies(program::DType type) {
  return type != program::DType::f16 && (type != program::DType::bf16 || makes_code_for(dnnl::cpu_isa::avx512_core));
}

// An f32 copy, in the workspace, of a matrix of a type that oneDNN does not multiply. Contiguous elements stay
// contiguous.
class WideCopy {
 public:
  WideCopy() = default;
  /// If `matrix` needs a copy, gives it the copy's form and adds the copy's size to `workspace_bytes`.
  WideCopy(MatrixForm& matrix, std::int64_t batch, std::int64_t rows, std::int64_t columns,
           std::size_t& workspace_bytes)
      : batch_(batch), of_(matrix), offset_(workspace_bytes) {
    if (multiplies(matrix.type)) return;
    const bool by_rows = matrix.column_stride == 1;
    lines_ = by_rows ? rows : columns;
    length_ = by_rows ? columns : rows;
    between_lines_ = by_rows ? matrix.row_stride : matrix.column_stride;
    matrix = {program::DType::f32, by_rows ? length_ : 1, by_rows ? 1 : length_, lines_ * length_};
    constexpr std::size_t alignment = 64;
    const std::size_t bytes = batch * lines_ * length_ * sizeof(float);
    workspace_bytes += (bytes + alignment - 1) / alignment * alignment;
  }

  /// Returns the operand's address for the product: that of the copy, or `matrix` if there is none.
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
      const std::int64_t element = line / lines_ * of_.batch_stride + line % lines_ * between_lines_;
      const backend::Tensor of_copy{wide, program::DType::f32, length_},
          stored{static_cast<std::byte*>(matrix) + element * program::size_of(of_.type), of_.type, length_};
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

struct Product::State {
  struct Operand {
    memory place;
    WideCopy copy;
  };
  explicit State(Compiled c) : code(std::move(c)) {}
  Compiled code;
  dnnl::stream stream{engine()};
  Workspace* workspace = nullptr;
  Operand a, b, bias, add, out, scratch;
  std::size_t scratch_offset = 0;  // in the workspace, behind the copies
  bool accumulate = false;
  dnnl_exec_arg_t arguments[6]{};
  int argument_count = 0;
};

Product::Product(const ProductForm& stored, Workspace& workspace) {
  ProductForm form = stored;
  MatrixForm bias{form.bias_type, form.n, 1, form.n}, add = form.out;
  std::size_t bytes = 0;
  const WideCopy of_a(form.a, form.batch, form.m, form.k, bytes), of_b(form.b, form.batch, form.k, form.n, bytes),
      of_bias(bias, form.bias ? 1 : 0, 1, form.n, bytes), of_add(add, form.add ? form.batch : 0, form.m, form.n, bytes),
      of_out(form.out, form.batch, form.m, form.n, bytes);
  form.bias_type = bias.type;
  state_ = std::make_shared<State>(compiled(form));
  State& s = *state_;
  s.workspace = &workspace;
  s.scratch_offset = bytes;
  s.accumulate = form.accumulate;
  const auto operand = [&s](State::Operand& to, int index, const memory::desc& desc, const WideCopy& copy) {
    to = {memory(desc, engine(), DNNL_MEMORY_NONE), copy};
    s.arguments[s.argument_count++] = {index, to.place.get()};
  };
  const auto& d = s.code.description;
  operand(s.a, DNNL_ARG_SRC, d.src_desc(), of_a);
  operand(s.b, DNNL_ARG_WEIGHTS, d.weights_desc(), of_b);
  operand(s.out, DNNL_ARG_DST, d.dst_desc(), of_out);
  if (form.bias) operand(s.bias, DNNL_ARG_BIAS, d.bias_desc(), of_bias);
  if (form.add) operand(s.add, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, d.dst_desc(), of_add);
  const memory::desc scratch = d.scratchpad_desc();
  if (scratch.get_size() > 0) operand(s.scratch, DNNL_ARG_SCRATCHPAD, scratch, {});
  const std::size_t pages = (bytes + scratch.get_size() + sizeof(Page) - 1) / sizeof(Page);
  if (pages > workspace.size()) workspace = Workspace(pages);
}

void Product::operator()(const void* a, const void* b, void* out, const void* bias, const void* add) const {
  State& s = *state_;
  void* const workspace = s.workspace->data();
  const auto point = [&](const State::Operand& operand, const void* to, bool is_read = true) {
    if (operand.place.get(true) == nullptr) return;
    void* const matrix = const_cast<void*>(to);
    if (is_read) operand.copy.fill(matrix, workspace);
    dnnl_memory_set_data_handle(operand.place.get(), operand.copy.at(matrix, workspace));
  };
  point(s.a, a);
  point(s.b, b);
  point(s.bias, bias);
  point(s.add, add);
  point(s.out, out, s.accumulate);
  point(s.scratch, static_cast<std::byte*>(workspace) + s.scratch_offset);
  const auto status = dnnl_primitive_execute(s.code.primitive.get(), s.stream.get(), s.argument_count, s.arguments);
  if (status != dnnl_success) fail("oneDNN reports error {} in a matrix product", static_cast<int>(status));
  s.out.copy.write_back(out, workspace);
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
  return makes_code_for(dnnl::cpu_isa::avx512_core_bf16);
}

}  // namespace harness::cpu
