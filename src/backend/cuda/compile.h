#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/runtime.h"
#include "backend/tensor.h"

namespace harness::cuda {

/// Turns compute operations into launches on fixed addresses. Whatever they need besides (algorithms, workspaces,
/// scratch) is chosen and allocated here, per stream, so that operations of different streams never share any; a launch
/// allocates nothing and may be captured.
class Compiler {
 public:
  Compiler(const ExecutableRequest& request, std::function<Tensor(const View&)> tensor);
  ~Compiler();

  using Run = std::function<void(Stream)>;
  Run compile(const Operation& operation);

  /// What travels with the results: choices that were not tuned, attention that could not be fused.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Device memory besides the arena.
  std::int64_t workspace_bytes() const;

 private:
  struct OfStream;  // what the operations of one stream use one after the other
  Run prepare(const Bound<Matmul>& op, OfStream& own);
  Run prepare(const Bound<Attention>& op, OfStream& own);
  Run prepare(const Bound<AttentionBackward>& op, OfStream& own);
  AttentionKernel& attention(const AttentionShape& shape, DType type, OfStream& own);
  template <class Op>
  std::int64_t scratch_for(const Op& op) const;  // floats
  OfStream& of_stream(StreamId stream);
  void warn_once(const std::string& text);
  bool tf32() const { return settings_.precision == Precision::tf32; }

  std::function<Tensor(const View&)> tensor_;
  KernelContext context_;  // without scratch, which every stream has its own of
  Settings settings_;
  std::shared_ptr<const Tuning> tuning_;
  std::map<StreamId, std::int64_t> scratch_of_;  // floats
  std::map<StreamId, std::unique_ptr<OfStream>> streams_;
  std::vector<std::string> warnings_;
};

}  // namespace harness::cuda
