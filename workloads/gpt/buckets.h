#pragma once

#include <deque>
#include <vector>

#include "workloads/gpt/parameters.h"

namespace harness::gpt {

/// Dynamic loss scaling of steps in fp16, with the rules and defaults of torch.amp.GradScaler (PyTorch,
/// torch/amp/grad_scaler.py). The loss's gradient, and with it every gradient up to the optimizer, is multiplied by a
/// scale. If a gradient overflows on any rank, all ranks leave out their update and halve the scale; after
/// growth_interval updates in a row they double it. Scale and counters are device memory and nothing is decided on the
/// host, so that a captured step replays. In other precisions the scaler is not active: its views are absent and its
/// calls emit nothing.
class LossScaler {
 public:
  static constexpr double initial_scale = 65536;

  /// Emits init operations.
  LossScaler(ProgramBuilder& builder, const Settings& settings);

  /// [1] f32: the factor of this step's gradients.
  View scale() const { return scale_; }
  /// Makes the updates, which come after everything that writes a gradient, depend on all gradients of the job: emits
  /// the check of those of this rank and its all-reduce over the world.
  void guard(std::vector<program::AdamW>& updates);
  /// After the updates.
  void end_step();

 private:
  bool active() const { return scale_.present(); }

  ProgramBuilder& b_;
  View scale_, good_steps_, updates_, found_inf_;
};

/// The factor of the gradients that the first step leaves in memory.
inline double first_gradient_scale(const Settings& settings) {
  return settings.precision == config::Precision::fp16 ? LossScaler::initial_scale : 1;
}

/// Handles the gradients of a stage: their reduction over data-parallel ranks and the update of the weights,
/// bucket by bucket.
///
/// Where the ranks share the state of the optimizer (ZeRO, Rajbhandari et al. 2020), a reduce-scatter gives each rank
/// the gradients of its part of a bucket, of which it updates the weights (gathers.h). Where they share the gradients
/// too, none keeps all of them from one micro-batch to the next: they are reduced after each backward pass, and a rank
/// adds up what it gets of its part. It does so before it begins with the bucket after the next, so that two buckets at
/// most are under way and their memory serves those that follow (as in PyTorch's FSDP).
///
/// Where those that share stand on one node, an all-reduce of a rank's part with its copies on other nodes follows each
/// reduce-scatter, on a stream of its own: links inside the node and between nodes are at work at once (as in PyTorch's
/// FSDP over a mesh of two dimensions).
///
/// With overlap_grad_reduce a bucket's reduction waits for its own gradients alone; without, it waits for the whole
/// backward pass. With overlap_optimizer a bucket is updated on a stream of its own as soon as nothing is added to its
/// gradients any more, on any rank; without, updates of everything end the step. Whatever else an update must wait for,
/// such as products that still read the old weights, follows from the memory that it touches.
///
/// Gradients may travel in another type than they are added up and used in. They are converted to it on the compute
/// stream, where they have just been computed (as a hook of DistributedDataParallel does: on a stream of its own, this
/// would queue behind what waits for the bucket before), and back where they are used.
///
/// With loss scaling the updates also wait for all gradients of the job (LossScaler), so none of them overlaps.
/// With gradient compression each rank keeps a residual, of all gradients that it has not sent yet. Of the sum of
/// gradients and residual, the replicas gather each other's largest elements of a bucket with their indices, and what
/// they gathered takes the place of the gradients. Parameters that all tensor ranks hold are left out and all-reduced
/// whole: each of these ranks would choose other elements, and their copies would part.
///
/// With sequence parallelism the tensor ranks first sum up the gradients of which each has a part: once per reduction,
/// for micro-batches add up in each part.
class Buckets {
 public:
  /// Begins before the step does.
  Buckets(ProgramBuilder& builder, const Parameters& parameters, LossScaler& scaler, const StepFrame& frame,
          const Settings& settings, const Layout& layout);

  /// A parameter's gradient is written until its next reduction, and for good where the step adds no more to it; where
  /// several operations write it, each says so. If this completes a bucket, emits its reduction.
  void complete(ParameterId parameter, bool for_good);
  /// After each backward pass: the reductions that it has left where no rank keeps its gradients.
  void end_backward(bool for_good);
  /// After all backward passes: everything that is left, and the exchange of the tied embedding's gradient.
  void finish();

 private:
  // Elements from the beginning of a bucket on.
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  struct Bucket {
    std::vector<Range> partial;    // runs of those of which each tensor rank has a part
    std::vector<Range> whole;      // runs that are reduced whole where the bucket is compressed
    std::vector<Range> gaps;       // that belong to no parameter
    int writers = 0, missing = 0;  // of its gradients, and those that are still to come before the next reduction
    int number = 0;
    bool tied = false;  // holds a gradient of which another stage has a part: not final before the exchange
    bool compressed = false;
    bool has_sum = false;  // of the micro-batches before, to which the next reduction is to be added
  };
  // A reduction that is emitted. A bucket may have two under way: of two passes.
  struct Reduction {
    Bucket* bucket = nullptr;
    bool for_good = false;
    View values = {};   // the result; absent: it is where it is used
    View indices = {};  // of the values in the bucket; absent: it is all of them
    View whole = {};    // of Bucket::whole, one run behind the other
  };
  // Emits the reduction and settles those before it, as many as need not wait any longer.
  void reduce(Bucket& bucket, const std::vector<OperationId>& after, bool for_good);
  void emit_reduction(Reduction& reduction, const std::vector<OperationId>& after);
  void gather_largest(Reduction& reduction, const std::vector<OperationId>& after);
  // Copies Bucket::whole out of the gradients, or back into them.
  void copy_whole(const Bucket& bucket, const View& packed, StreamId stream, bool back);
  // Takes and updates what is under way, oldest first, until `left` reductions are.
  void settle(std::size_t left);
  void take(const Reduction& reduction);
  void update(const Bucket& bucket);
  bool each_pass() const { return !parameters_.whole_gradients(); }
  program::AdamW update_of(const View& place) const {
    return parameters_.update_of(place, frame_.counter(), learning_rate_);
  }
  bool sharded() const { return parameters_.shards() > 1; }
  bool replicated() const { return replicas_ > 1; }
  bool reduces_late() const { return replicated() && !overlap_reduction_; }

  ProgramBuilder& b_;
  const Parameters& parameters_;
  LossScaler& scaler_;
  const StepFrame& frame_;
  View learning_rate_;
  int replicas_;
  bool across_nodes_, overlap_reduction_, overlap_optimizer_;
  DType wire_;
  double sent_share_;  // of gradients, where there is a residual
  View residual_;      // as the gradients lie; absent: all of them are sent
  std::vector<Bucket> buckets_;
  std::deque<Reduction> under_way_;
};

}  // namespace harness::gpt
