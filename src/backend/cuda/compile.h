#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "backend/bound.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/runtime.h"

namespace harness::cuda {

/// Turns compute operations into launches on fixed addresses. Whatever they need besides (algorithms, workspaces,
/// scratch) is chosen and allocated here, per stream, so that operations of different streams never share any; a launch
/// allocates nothing and may be captured.
class Compiler {
 public:
  Compiler(const backend::ExecutableRequest& request, std::function<backend::Tensor(const program::View&)> tensor);
  ~Compiler();

  using Run = std::function<void(Stream)>;
  Run compile(const program::Operation& operation);

  /// Warnings for the results: choices that were not tuned, attention that could not be fused.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct OfStream;  // what the operations of one stream use one after the other
  Run prepare(const backend::Bound<program::Matmul>& op, OfStream& own);
  Run prepare(const backend::Bound<program::Attention>& op, OfStream& own);
  Run prepare(const backend::Bound<program::AttentionBackward>& op, OfStream& own);
  struct AttentionForm {
    program::AttentionShape shape;
    program::DType type;
    bool keeps_probabilities;
    std::int64_t documents;
    auto operator<=>(const AttentionForm&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
  };
  AttentionKernel& attention(const AttentionForm& form, OfStream& own);
  template <class Op>
  std::int64_t scratch_for(const Op& op) const;  // floats
  OfStream& of_stream(program::StreamId stream);
  void warn_once(const std::string& text);
  bool tf32() const { return settings_.precision == config::Precision::tf32; }

  std::function<backend::Tensor(const program::View&)> tensor_;
  backend::KernelContext context_;  // without scratch, which every stream has its own of
  config::Settings settings_;
  std::shared_ptr<const backend::Tuning> tuning_;
  std::map<program::StreamId, std::int64_t> scratch_of_;  // floats
  std::map<program::StreamId, std::unique_ptr<OfStream>> streams_;
  std::vector<std::string> warnings_;
};

}  // namespace harness::cuda
