#include "backend/cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/kernels/kernels.h"
#include "base/text.h"

// cuBLASLt multiplies column-major matrices, and a row-major matrix is the transpose of a column-major one. So out =
// op(a) op(b) becomes out^T = op(b)^T op(a)^T: the library's A is our b and its B our a, each with its own transpose
// flag, and D has n rows and m columns. A bias over our n columns is its bias over D's rows; a bias gradient over our m
// rows is its BGRADB (over D's columns); GELU's auxiliary matrix has the shape and stride of out. With beta = 1 the
// library adds C to the product before the epilogue: C is out itself if we accumulate, or `add`, in out's layout, if
// present.
namespace harness::cuda {
namespace {

void check(cublasStatus_t status, const char* what, const Product* product = nullptr) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("{} failed: {}{}", what, cublasLtGetStatusString(status), product ? " for " + key_of(*product) : "");
}

cudaDataType_t data_type(program::DType type) {
  switch (type) {
    case program::DType::f32:
      return CUDA_R_32F;
    case program::DType::bf16:
      return CUDA_R_16BF;
    case program::DType::f16:
      return CUDA_R_16F;
    case program::DType::e4m3:
      return CUDA_R_8F_E4M3;
    case program::DType::e5m2:
      return CUDA_R_8F_E5M2;
    case program::DType::i32:
    case program::DType::e8m0:
      break;
  }
  fail("cuBLASLt multiplies no elements of this type");
}

template <class T>
struct Owned {  // a cuBLASLt object and how to destroy it
  T object = nullptr;
  cublasStatus_t (*destroy)(T) = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object != nullptr) static_cast<void>(destroy(object));
  }
};

template <class V>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const V& value) {
  check(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

template <class V>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const V& value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
}

template <class V>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const V& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

// Creates the layout of a stored row-major matrix that enters the product as [rows, columns].
void make_layout(Owned<cublasLtMatrixLayout_t>& layout, const Product& p, program::DType type,
                 const Product::Strides& strides, std::int64_t rows, std::int64_t columns, bool transposed) {
  if (transposed) std::swap(rows, columns);
  layout.destroy = cublasLtMatrixLayoutDestroy;
  check(cublasLtMatrixLayoutCreate(&layout.object, data_type(type), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), strides.row),
        "cublasLtMatrixLayoutCreate");
  if (p.batch > 1) {
    set(layout.object, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(p.batch));
    set(layout.object, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, strides.batch);
  }
}

cublasLtEpilogue_t epilogue_of(const backend::Bound<program::Matmul>& op) {
  if (op.bias_gradient) return CUBLASLT_EPILOGUE_BGRADB;
  switch (op.epilogue) {
    case program::Epilogue::gelu:
      return op.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case program::Epilogue::gelu_backward:
      return CUBLASLT_EPILOGUE_DGELU;
    case program::Epilogue::none:
      break;
  }
  return op.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The library's GELU needs rows of the auxiliary matrix in multiples of 8 elements. With 8-bit factors, own kernels
// compute GELU and bias gradients.
bool has_fused_form(const Product& p) {
  if (program::is_fp8(p.op.a.type)) return !p.composite();
  return p.op.epilogue == program::Epilogue::none || (p.out.row % 8 == 0 && p.alignment_bytes >= 16);
}

// Sets one scale per block for both 8-bit factors, laid out as in base/floats.h.
void set_block_scales(cublasLtMatmulDesc_t desc) {
  constexpr std::size_t since = 120800;
  if (CUBLAS_VERSION < since || cublasLtGetVersion() < since)
    fail(
        "precision mxfp8 needs cuBLAS 12.8 or newer, of CUDA 12.8; this program was built with {} and runs with {}: "
        "build it with a newer toolkit, or take precision fp8",
        print_version(CUBLAS_VERSION), Blas::version());
  if (const int has = compute_capability(); has < 100)
    fail(
        "precision mxfp8 needs tensor cores of compute capability 10.0 (Blackwell) or later; this GPU has {}.{}: take "
        "precision fp8 or bf16 here",
        has / 10, has % 10);
#if CUBLAS_VERSION >= 120800
  for (const auto attribute : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
    set(desc, attribute, static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0));
#endif
}

// Whether C may differ from D: one layout serves both, so the heuristic does not know that `add` needs it.
bool takes_another_c(const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t supported = 1;
  std::size_t written = 0;
  static_cast<void>(cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT,
                                                      &supported, sizeof supported, &written));
  return supported != 0;
}

}  // namespace

/// One call of the library with everything it points to.
struct Blas::Call {
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> a, b, out;
  cublasLtMatmulAlgo_t algorithm{};
  backend::Bound<program::Matmul> op;
  cublasLtHandle_t handle = nullptr;
  std::byte* workspace = nullptr;

  Call(cublasLtHandle_t h, std::byte* w, const Product& p) : op(p.op), handle(h), workspace(w) {
    desc.destroy = cublasLtMatmulDescDestroy;
    check(
        cublasLtMatmulDescCreate(&desc.object, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
    set(desc.object, CUBLASLT_MATMUL_DESC_TRANSA, op.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(desc.object, CUBLASLT_MATMUL_DESC_TRANSB, op.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    make_layout(a, p, op.a.type, p.a, op.m, op.k, op.transpose_a);
    make_layout(b, p, op.b.type, p.b, op.k, op.n, op.transpose_b);
    make_layout(out, p, op.out.type, p.out, op.m, op.n, false);
    if (program::is_fp8(op.a.type)) {
      set(desc.object, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(op.b_scale.data));
      set(desc.object, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(op.a_scale.data));
      if (p.block_scales()) set_block_scales(desc.object);
      // Forward products accumulate with fewer bits, as in Transformer Engine: for the tensor cores of Hopper.
      const bool forward = op.a.type == program::DType::e4m3 && op.b.type == program::DType::e4m3 && !p.block_scales();
      set(desc.object, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(forward ? 1 : 0));
    }
    const cublasLtEpilogue_t epilogue = epilogue_of(op);
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
    set(desc.object, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (const backend::Tensor& vector = op.bias_gradient ? op.bias_gradient : op.bias) {
      set(desc.object, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vector.data));
      set(desc.object, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(vector.type));
    }
    if (op.epilogue != program::Epilogue::none) {
      set(desc.object, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, op.aux.data);
      set(desc.object, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.out.row);
    }
  }

  void run(Stream stream) const {
    const float alpha = 1, beta = op.accumulate || op.add ? 1.0F : 0.0F;
    const void* c = op.add ? op.add.data : op.out.data;
    check(cublasLtMatmul(handle, desc.object, &alpha, op.b.data, b.object, op.a.data, a.object, &beta, c, out.object,
                         op.out.data, out.object, &algorithm, workspace, Blas::workspace_bytes, stream),
          "cublasLtMatmul");
  }
};

Blas::Blas() : workspace_(Memory::Kind::device, workspace_bytes, "cuBLASLt's workspace") {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  handle_.reset(handle);
}

void Blas::Close::operator()(cublasLtContext* handle) const {
  static_cast<void>(cublasLtDestroy(handle));
}

std::vector<std::string> Blas::proposals(const Product& product, int at_most) {
  if (!has_fused_form(product)) return {};
  const Call call(handle_.get(), workspace_.data(), product);
  Owned<cublasLtMatmulPreference_t> preference;
  preference.destroy = cublasLtMatmulPreferenceDestroy;
  check(cublasLtMatmulPreferenceCreate(&preference.object), "cublasLtMatmulPreferenceCreate");
  set(preference.object, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference.object, attribute, static_cast<std::uint32_t>(product.alignment_bytes));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> results(at_most);
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_.get(), call.desc.object, call.b.object, call.a.object, call.out.object,
                                     call.out.object, preference.object, at_most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  // An epilogue that the library rejects as invalid can still run as a plain product plus own kernels.
  if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_EXECUTION_FAILED && product.composite()) {
    refusals_.push_back(fmt::format("cuBLASLt answers {} where it is asked for the fused form of {}",
                                    cublasLtGetStatusString(status), key_of(product)));
    return {};
  }
  check(status, "cublasLtMatmulAlgoGetHeuristic", &product);
  std::vector<std::string> algorithms;
  for (int i = 0; i < found; ++i) {
    const auto& r = results[i];
    if (r.state != CUBLAS_STATUS_SUCCESS || std::cmp_greater(r.workspaceSize, workspace_bytes)) continue;
    if (product.op.add && !takes_another_c(r.algo)) continue;
    algorithms.emplace_back(reinterpret_cast<const char*>(&r.algo), sizeof r.algo);
  }
  return algorithms;
}

std::shared_ptr<Blas::Call> Blas::call(const Product& product, const std::string& algorithm) {
  std::string bytes = algorithm;
  if (bytes.empty()) {
    const auto found = proposals(product, 4);
    if (found.empty()) fail("cuBLASLt has no algorithm for {}", key_of(product));
    bytes = found.front();
  }
  auto call = std::make_shared<Call>(handle_.get(), workspace_.data(), product);
  if (bytes.size() != sizeof call->algorithm) {
    fail("the tuned algorithm of {} has {} bytes, cuBLASLt's have {}: it is of another version; tune again",
         key_of(product), bytes.size(), sizeof call->algorithm);
  }
  std::memcpy(&call->algorithm, bytes.data(), bytes.size());
  return call;
}

Blas::Run Blas::prepare(const Product& product, const ProductChoice& choice) {
  const auto& op = product.op;
  if (choice.fused || !product.composite()) {
    // The library overwrites a bias gradient. To accumulate, it writes to scratch, which is then added.
    if (op.bias_gradient && op.accumulate) {
      Product aside = product;
      aside.op.bias_gradient = {product.scratch, program::DType::f32, op.m};
      return [fused = call(aside, choice.algorithm), from = aside.op.bias_gradient, to = op.bias_gradient](Stream s) {
        fused->run(s);
        run(s,
            backend::Bound<program::ResidualAdd>{.in = from, .residual = to, .out = to, .rows = 1, .width = to.count});
      };
    }
    return [fused = call(product, choice.algorithm)](Stream s) { fused->run(s); };
  }
  return [multiply = call(product.plain(), choice.algorithm), op, scratch = product.scratch](Stream s) {
    multiply->run(s);
    if (op.epilogue == program::Epilogue::gelu) run(s, backend::Bound<program::Gelu>{op.aux, op.out});
    if (op.epilogue == program::Epilogue::gelu_backward) run(s, backend::Bound<program::GeluBackward>{op.aux, op.out});
    if (op.bias_gradient) {
      run(s, backend::Bound<program::ColumnSum>{op.a, op.bias_gradient, op.k, op.m, op.accumulate},
          {.scratch = scratch});
    }
  };
}

ProductChoice Blas::default_choice(const Product& product) {
  return {!product.composite() || !proposals(product, 1).empty(), ""};
}

std::vector<ProductChoice> Blas::candidates(const Product& product, int at_most) {
  std::vector<ProductChoice> all;
  if (product.composite()) {
    for (const std::string& a : proposals(product.plain(), at_most)) all.push_back({false, a});
  }
  for (const std::string& a : proposals(product, at_most)) all.push_back({true, a});
  return all;
}

std::string Blas::version() {
  return print_version(cublasLtGetVersion());
}

}  // namespace harness::cuda
