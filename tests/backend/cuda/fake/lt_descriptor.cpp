#include "lt.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "core.h"
#include "runtime.h"

namespace harness::fake {
namespace {

struct Field {
  int attribute;
  std::size_t offset;
  std::size_t bytes;
};
#define HARNESS_FAKE_FIELD(attribute, type, member) \
  { attribute, offsetof(type, member), sizeof(type::member) }

constexpr Field descriptor_fields[] = {
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, LtDescriptor, transpose_a),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, LtDescriptor, transpose_b),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, LtDescriptor, epilogue),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, LtDescriptor, bias),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, LtDescriptor, aux),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, LtDescriptor, aux_ld),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, LtDescriptor, bias_type),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, LtDescriptor, a_scale),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, LtDescriptor, b_scale),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, LtDescriptor, fast_accumulation),
#if CUBLAS_VERSION >= 120800
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, LtDescriptor, a_scale_mode),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, LtDescriptor, b_scale_mode),
#endif
};
constexpr Field layout_fields[] = {
    HARNESS_FAKE_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, LtLayout, batch_count),
    HARNESS_FAKE_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LtLayout, batch_stride),
};
constexpr Field preference_fields[] = {
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, LtPreference, max_workspace_bytes),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, LtPreference, min_alignment[0]),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, LtPreference, min_alignment[1]),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, LtPreference, min_alignment[2]),
    HARNESS_FAKE_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, LtPreference, min_alignment[3]),
};
#undef HARNESS_FAKE_FIELD

// The descriptors that ...Create made. The memory of destroyed ones is kept, so that a later use is recognised.
struct Made {
  std::mutex mutex;
  std::set<void*> live;
  std::vector<void*> dead;
  Registry<cublasLtHandle_t, int> handles{0x56, "cuBLASLt handles"};
};

Made& made() {
  static Made& all = *new Made;
  static const bool known = take_part({2,
                                       [] {
                                         const std::lock_guard lock(made().mutex);
                                         for (void* opaque : made().live) made().dead.push_back(opaque);
                                         made().live.clear();
                                       },
                                       [](std::vector<std::string>& into) {
                                         const std::lock_guard lock(made().mutex);
                                         if (!made().live.empty()) {
                                           into.push_back(fmt::format("{} cuBLASLt descriptors", made().live.size()));
                                         }
                                       }});
  (void)known;
  return all;
}

template <typename Content, typename Opaque>
const Content* look(const Opaque* opaque) {
  static_assert(sizeof(Content) <= sizeof(Opaque));
  if (opaque == nullptr) return nullptr;
  const auto* content = reinterpret_cast<const Content*>(opaque);
  return content->magic == Content::live ? content : nullptr;
}

template <typename Content, typename Opaque>
cublasStatus_t create(Opaque** opaque, const Content& content) {
  *opaque = new Opaque;
  const std::lock_guard lock(made().mutex);
  made().live.insert(*opaque);
  std::memset(*opaque, 0, sizeof(Opaque));
  std::memcpy(*opaque, &content, sizeof content);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t destroy(Opaque* opaque, const char* call) {
  const std::lock_guard lock(made().mutex);
  if (made().live.erase(opaque) == 0) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "not a live descriptor");
  std::memset(opaque, 0, sizeof(Opaque));
  made().dead.push_back(opaque);
  return CUBLAS_STATUS_SUCCESS;
}

template <std::size_t count>
const Field* field_of(const Field (&fields)[count], int attribute) {
  for (const Field& field : fields) {
    if (field.attribute == attribute) return &field;
  }
  return nullptr;
}

template <typename Content, typename Opaque, std::size_t count>
cublasStatus_t set(Opaque* opaque, const Field (&fields)[count], int attribute, const void* from, std::size_t bytes,
                   const char* call) {
  if (look<Content>(opaque) == nullptr) return lt_failed(CUBLAS_STATUS_INVALID_VALUE, call, "not a live descriptor");
  const Field* field = field_of(fields, attribute);
  if (field == nullptr) {
    complain(fmt::format("{}: attribute {} is not known here", call, attribute));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (from == nullptr || bytes != field->bytes) {
    complain(fmt::format("{}: attribute {} has {} bytes, not {}", call, attribute, field->bytes, bytes));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(reinterpret_cast<char*>(opaque) + field->offset, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const LtDescriptor* content(cublasLtMatmulDesc_t opaque) {
  return look<LtDescriptor>(opaque);
}
const LtLayout* content(cublasLtMatrixLayout_t opaque) {
  return look<LtLayout>(opaque);
}
const LtPreference* content(cublasLtMatmulPreference_t opaque) {
  return look<LtPreference>(opaque);
}

bool is_live(cublasLtHandle_t handle) {
  return made().handles.find(handle) != nullptr;
}

cublasStatus_t lt_failed(cublasStatus_t status, const char* call, const char* why) {
  complain(fmt::format("{}: {} ({})", call, why, cublasLtGetStatusName(status)));
  return status;
}

}  // namespace harness::fake

using namespace harness::fake;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (settings().device_count == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = made().handles.add(std::make_shared<int>(current_device()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (made().handles.remove(handle)) return CUBLAS_STATUS_SUCCESS;
  return lt_failed(CUBLAS_STATUS_NOT_INITIALIZED, "cublasLtDestroy", "not a live handle");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* opaque, cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  return create(opaque, LtDescriptor{.compute_type = compute_type, .scale_type = scale_type});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t opaque) {
  return destroy(opaque, "cublasLtMatmulDescDestroy");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque, cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, size_t bytes) {
  return set<LtDescriptor>(opaque, descriptor_fields, attribute, from, bytes, "cublasLtMatmulDescSetAttribute");
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* opaque, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  return create(opaque, LtLayout{.type = type, .rows = rows, .cols = cols, .ld = ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t opaque) {
  return destroy(opaque, "cublasLtMatrixLayoutDestroy");
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* from,
                                                size_t bytes) {
  return set<LtLayout>(opaque, layout_fields, attribute, from, bytes, "cublasLtMatrixLayoutSetAttribute");
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* opaque) {
  return create(opaque, LtPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t opaque) {
  return destroy(opaque, "cublasLtMatmulPreferenceDestroy");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* from,
                                                    size_t bytes) {
  return set<LtPreference>(opaque, preference_fields, attribute, from, bytes, "cublasLtMatmulPreferenceSetAttribute");
}
