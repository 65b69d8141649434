#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/bound.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// Attention of one shape and type on one stream, forward and backward, as Attention and AttentionBackward in
/// program/attention.h. Owns its workspace.
class AttentionKernel {
 public:
  using Run = std::function<void(Stream)>;
  virtual ~AttentionKernel() = default;
  virtual Run forward(const backend::Bound<program::Attention>& at) = 0;
  virtual Run backward(const backend::Bound<program::AttentionBackward>& at) = 0;
};

/// The form that a kernel is made for. documents: the most in a sequence, as in Attention; 0: a sequence is one.
struct AttentionForm {
  program::AttentionShape shape;
  program::DType type;
  std::int64_t documents = 0;
  bool keeps_probabilities = false;
  auto operator<=>(const AttentionForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
};

/// cuDNN's fused kernels, which keep no scores in memory: bf16 and f16 only. `engine` is the number of the kernel among
/// those that cuDNN proposes for the shape and direction, best guess first; -1: the first that it can build. A kernel
/// is built when its direction is first asked for; that throws Error if cuDNN has none, or fewer. Only where it is
/// available.
std::unique_ptr<AttentionKernel> make_fused_attention(const AttentionForm& form, int engine);
/// Why there is no fused attention of this shape and type in this build, with this cuDNN, or on the calling thread's
/// GPU: "" if there is.
std::string fused_attention_unavailable(const AttentionForm& form);
/// How many kernels cuDNN proposes for one direction on the GPU that `device` describes (cuDNN's JSON of a DEVICEPROP
/// descriptor); needs that GPU's driver library, but no GPU. Throws Error with cuDNN's reason where it proposes none.
std::int64_t count_fused_kernels(const AttentionForm& form, bool backward, std::string_view device);
/// "9.19.0"; "" if this build has no cuDNN.
std::string cudnn_version();
/// Why fused attention of this shape is not trusted to a cuDNN of this version, as cudnnGetVersion() gives it; "" if it
/// is.
std::string cudnn_too_old(std::size_t version, const program::AttentionShape& shape);

/// Two batched products with a softmax between them, a sequence at a time. Where the operations keep no probabilities,
/// it has scores of one sequence of its own, and backward computes them again. Any type. `blas` must outlive it and
/// belong to the same stream.
std::unique_ptr<AttentionKernel> make_unfused_attention(const AttentionForm& form, bool tf32, Blas& blas);

}  // namespace harness::cuda
