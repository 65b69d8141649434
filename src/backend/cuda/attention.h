#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/bound.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// Runs attention of one shape and type on one stream: Attention and AttentionBackward of program/attention.h. Owns its
/// workspace.
class AttentionKernel {
 public:
  using Run = std::function<void(Stream)>;
  virtual ~AttentionKernel() = default;
  virtual Run forward(const backend::Bound<program::Attention>& at) = 0;
  virtual Run backward(const backend::Bound<program::AttentionBackward>& at) = 0;
};

/// Selects a kernel. documents: the most in a sequence, as in Attention; 0: a sequence is one document.
struct AttentionForm {
  program::AttentionShape shape;
  program::DType type;
  std::int64_t documents = 0;
  bool keeps_probabilities = false;
  auto operator<=>(const AttentionForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// Makes cuDNN's fused attention, which stores no scores in memory: bf16 and f16 only. `engine` indexes the kernels
/// that cuDNN proposes for the shape and direction, best guess first; -1 takes the first that builds. The first request
/// for a direction builds its kernel, and throws Error if cuDNN has none, or fewer. Call only if it is available.
std::unique_ptr<AttentionKernel> make_fused_attention(const AttentionForm& form, int engine);
/// Returns why fused attention of this shape and type is unavailable in this build, with this cuDNN, or on the calling
/// thread's GPU; "" if it is available. `backward`: whether the backward pass is needed, too, which takes fewer shapes.
std::string fused_attention_unavailable(const AttentionForm& form, bool backward);
/// Returns how many kernels cuDNN proposes for one direction on the GPU that `device` describes (cuDNN's JSON of a
/// DEVICEPROP descriptor). Needs that GPU's driver library, but no GPU. Throws Error with cuDNN's reason if none.
std::int64_t count_fused_kernels(const AttentionForm& form, bool backward, std::string_view device);
/// The version of cuDNN that is loaded: "9.19.0".
std::string cudnn_version();
/// Returns why fused attention of this form is missing or unsafe in a cuDNN version (as cudnnGetVersion() returns it);
/// "" if it is there and safe.
std::string cudnn_too_old(std::size_t version, const AttentionForm& form);

/// Makes attention from two batched products with a softmax between them, one sequence at a time. If the operations
/// keep no probabilities, it holds the scores of one sequence itself, and backward recomputes them. Any type. `blas`
/// must outlive it and belong to the same stream.
std::unique_ptr<AttentionKernel> make_unfused_attention(const AttentionForm& form, bool tf32, Blas& blas);

}  // namespace harness::cuda
