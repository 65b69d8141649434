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
  template <class A>
  Run of(const A& action, OfStream& own);
  Run product(const Matmul& op, OfStream& own);
  AttentionKernel& attention(const AttentionShape& shape, DType type, OfStream& own);
  std::int64_t scratch_floats(const Action& action) const;
  Product product_for(const Matmul& op) const;
  OfStream& of_stream(StreamId stream);
  void warn_once(const std::string& text);
  Tensor at(const View& view) const { return view.present() ? tensor_(view) : Tensor{}; }
  int coordinate(Axis axis) const { return at_[axis]; }

  std::function<Tensor(const View&)> tensor_;
  Coordinates at_;
  std::uint64_t seed_;
  Settings settings_;
  std::shared_ptr<const Tuning> tuning_;
  std::map<StreamId, std::int64_t> scratch_of_;  // floats
  std::map<StreamId, std::unique_ptr<OfStream>> streams_;
  std::vector<std::string> warnings_;
};

}  // namespace harness::cuda
