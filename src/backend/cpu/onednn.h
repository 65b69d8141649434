#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "program/operation.h"

// Matrix products by oneDNN (versions 2.6 and 3). Only onednn.cpp calls the library.
namespace harness::cpu {

/// A matrix of a product: element (i, j) of batch b lies at b * batch_stride + i * row_stride + j * column_stride.
struct MatrixForm {
  program::DType type = program::DType::f32;
  std::int64_t row_stride = 0, column_stride = 1, batch_stride = 0;
  auto operator<=>(const MatrixForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// out[m, n] (+)= a[m, k] b[k, n] + bias[n] + add[m, n], `batch` times. `add` has the form of `out` and excludes
/// `accumulate`.
struct ProductForm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixForm a, b, out;
  bool bias = false;
  program::DType bias_type = program::DType::f32;
  bool add = false, accumulate = false;
  auto operator<=>(const ProductForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

struct alignas(4096) Page {
  Page() {}  // NOLINT(modernize-use-equals-default): the threads that use the bytes are the first to touch them
  std::byte bytes[4096];
};
/// Memory that the products of one thread use in turn. It grows only while products are made.
using Workspace = std::vector<Page>;

/// A product, prepared once and run any number of times, by one thread at a time. It uses omp_get_max_threads() OpenMP
/// threads as of its construction and must run under the same number. Allocates nothing when run.
class Product {
 public:
  Product(const ProductForm& form, Workspace& workspace);
  void operator()(const void* a, const void* b, void* out, const void* bias = nullptr, const void* add = nullptr) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

std::string onednn_version();
/// The instruction set that oneDNN generates code for: "avx512_core_bf16" ….
std::string onednn_instruction_set();
bool has_native_bf16();

}  // namespace harness::cpu
