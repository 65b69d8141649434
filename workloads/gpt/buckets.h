#pragma once

#include <vector>

#include "workloads/gpt/parameters.h"
#include "workloads/step.h"

namespace harness::gpt {

/// What becomes of the gradients of a stage: their reduction over data-parallel ranks and the update of the weights,
/// bucket by bucket.
///
/// Where the ranks share the state of the optimizer (ZeRO, Rajbhandari et al. 2020), a reduce-scatter gives each rank
/// the gradients of its part of a bucket, of which it updates the weights. The step after gathers them from all ranks
/// before it reads them.
///
/// With overlap_grad_reduce a bucket's all-reduce waits for its own gradients alone; without, it waits for the whole
/// backward pass. With overlap_optimizer a bucket is updated on a stream of its own as soon as nothing is added to its
/// gradients any more, on any rank; without, one update of everything ends the step. Whatever else an update must wait
/// for, such as products that still read the old weights, follows from the memory that it touches.
///
/// Gradients may travel in another type than they are added up and used in. They are converted to it on the compute
/// stream, where they have just been computed (as a hook of DistributedDataParallel does: on a stream of its own, this
/// would queue behind what waits for the bucket before), and back where they are used.
///
/// With sequence parallelism the tensor ranks first sum up the gradients of which each has a part: once per step, for
/// micro-batches add up in each part.
class Buckets {
 public:
  /// Begins before the step does.
  Buckets(program::ProgramBuilder& builder, const Parameters& parameters, const workloads::StepFrame& frame,
          const config::Settings& settings, const program::Layout& layout);

  /// Emits the gathering of what the step before has updated, in the order in which layers use it. First in a step;
  /// returns what all layers wait for.
  std::vector<program::OperationId> gather_weights();
  /// The last micro-batch has written a parameter's gradient; where several operations write it, each says so. Emits
  /// what its bucket, if now complete, need not wait with.
  void complete(ParameterId parameter);
  /// After the backward pass: everything that is left, and the exchange of the tied embedding's gradient.
  void finish();

 private:
  struct Bucket {
    program::View gradients;
    std::vector<program::View> partial;  // runs of those of which each tensor rank has a part
    program::View on_wire;               // the reduced ones, where they travel in another type
    int missing = 0;                     // writers of its gradients that are still to come
    int number = 0;
    bool tied = false;  // holds a gradient of which another stage has a part: not final before the exchange
  };
  void reduce(Bucket& bucket, const std::vector<program::OperationId>& after);
  void take_from_wire(Bucket& bucket);
  void update(Bucket& bucket);
  program::AdamW update_of(const program::View& gradients) const {
    return parameters_.update_of(gradients, frame_.counter(), learning_rate_);
  }
  // What its reduction leaves on this rank.
  program::View reduced(const program::View& gradients) const {
    return sharded() ? parameters_.own(gradients) : gradients;
  }
  program::StreamId update_stream() const {
    return overlap_optimizer_ ? workloads::optimizer_stream : workloads::compute_stream;
  }
  bool sharded() const { return parameters_.shards() > 1; }
  bool reduces_late() const { return replicated_ && !overlap_reduction_; }

  program::ProgramBuilder& b_;
  const Parameters& parameters_;
  const workloads::StepFrame& frame_;
  program::View learning_rate_;
  bool replicated_, overlap_reduction_, overlap_optimizer_, overlap_gather_;
  program::DType wire_;
  std::vector<Bucket> buckets_;
};

}  // namespace harness::gpt
