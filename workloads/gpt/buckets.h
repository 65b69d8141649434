#pragma once

#include <string>
#include <vector>

#include "workloads/gpt/stage.h"

namespace harness::gpt {

/// What becomes of the gradients of a stage: their reduction over data-parallel ranks and the update of the weights,
/// cut into buckets. Buckets are cut from the end of the flat gradient buffer, the order in which the backward pass
/// completes gradients, at parameter borders, each at least bucket_size_bytes (the last takes what is left).
///
/// With overlap_grad_reduce a bucket's all-reduce waits for its own gradients alone; without, it waits for the whole
/// backward pass. With overlap_optimizer a bucket is updated on a stream of its own as soon as nothing is added to its
/// gradients any more, on any rank; without, one update of everything ends the step. Whatever else an update must wait
/// for, such as products that still read the old weights, follows from the memory that it touches.
class Buckets {
 public:
  Buckets(program::ProgramBuilder& builder, Stage& stage, const config::Settings& settings);

  /// A parameter's gradient is complete on this rank. Emits what its bucket, if now complete, need not wait with.
  void complete(const std::string& parameter);
  /// After the backward pass: everything that is left, and the exchange of the tied embedding's gradient.
  void finish();

 private:
  struct Bucket {
    program::View gradients;
    int missing = 0;  // parameters whose gradient is not complete
    int number = 0;
    bool tied = false;  // holds a gradient of which another stage has a part: not final before the exchange
  };
  void reduce(const Bucket& bucket, const std::vector<program::OperationId>& after);
  void update(const Bucket& bucket);
  bool reduces_late() const { return stage_.dims().data > 1 && !overlap_reduction_; }

  program::ProgramBuilder& b_;
  Stage& stage_;
  bool overlap_reduction_, overlap_optimizer_;
  std::vector<Bucket> buckets_;
  std::map<std::string, std::size_t> bucket_of_;
};

}  // namespace harness::gpt
