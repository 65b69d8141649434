#pragma once

#include <deque>
#include <vector>

#include "workloads/gpt/parameters.h"

namespace harness::gpt {

/// Dynamic loss scaling of fp16 steps, with the rules and defaults of torch.amp.GradScaler (PyTorch,
/// torch/amp/grad_scaler.py). The loss's gradient, and with it every gradient up to the optimizer, is multiplied by a
/// scale. If a gradient overflows on any rank, all ranks skip their update and halve the scale; after growth_interval
/// updates in a row they double it. Scale and counters are in device memory and the host decides nothing, so that a
/// captured step can be replayed. In other precisions the scaler is inactive: its views are absent and its calls emit
/// nothing.
class LossScaler {
 public:
  static constexpr double initial_scale = 65536;

  /// Emits init operations.
  LossScaler(ProgramBuilder& builder, const Settings& settings);

  /// [1] f32: the factor of this step's gradients.
  View scale() const { return scale_; }
  /// Makes the updates depend on all gradients of the job: emits the check of this rank's gradients and its all-reduce
  /// over the world. The updates must follow everything that writes a gradient.
  void guard(std::vector<program::AdamW>& updates);
  /// Call after the updates.
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

/// Reduces the gradients of a stage over data-parallel ranks and updates the weights, bucket by bucket.
///
/// If the ranks share the optimizer state (ZeRO, Rajbhandari et al. 2020), a reduce-scatter gives each rank the
/// gradients of its part of a bucket, whose weights it updates (gathers.h). If they share the gradients too, no rank
/// keeps all of them between micro-batches: they are reduced after each backward pass, and each rank accumulates its
/// part. It does so before it starts on the bucket after the next, so that at most two buckets are in flight and later
/// ones reuse their memory (as in PyTorch's FSDP).
///
/// If the ranks that share are on one node, each reduce-scatter is followed by an all-reduce of a rank's part with its
/// copies on other nodes, on a stream of its own: links within and between nodes work at the same time (as in PyTorch's
/// FSDP over a two-dimensional mesh).
///
/// With overlap_grad_reduce a bucket's reduction waits only for its own gradients; without, for the whole backward
/// pass. With overlap_optimizer a bucket is updated on a stream of its own as soon as its gradients are final on all
/// ranks; without, updates of everything end the step. The other dependencies of an update, such as products that still
/// read the old weights, follow from the memory that it touches.
///
/// Gradients may travel in another type than they are accumulated and used in. They are converted on the compute
/// stream, right after they are computed (as by a hook of DistributedDataParallel: on a stream of its own, the
/// conversion would queue behind what waits for the bucket before), and converted back where they are used.
///
/// With loss scaling the updates also wait for all gradients of the job (LossScaler), so none of them overlaps.
/// With gradient compression each rank keeps a residual of all gradients that it has not sent yet. The replicas gather
/// each other's largest elements of the sum of a bucket's gradients and the residual, with their indices; these
/// elements replace the gradients. Parameters that all tensor ranks hold are left out and all-reduced whole: each of
/// these ranks would choose other elements, and their copies would diverge.
///
/// With sequence parallelism the tensor ranks first sum the gradients that each holds in part: once per reduction,
/// because micro-batches accumulate in each part.
class Buckets {
 public:
  /// Construct before the step begins.
  Buckets(ProgramBuilder& builder, const Parameters& parameters, LossScaler& scaler, const StepFrame& frame,
          const Settings& settings, const Layout& layout);

  /// Reports that an operation of the pass wrote this parameter's gradient; each operation that writes it reports once.
  /// for_good: the step adds no more to it. If this completes a bucket, emits its reduction.
  void complete(ParameterId parameter, bool for_good);
  /// Call after each backward pass: emits its remaining reductions if no rank keeps its gradients.
  void end_backward(bool for_good);
  /// Call after all backward passes: emits everything that is left, and the exchange of the tied embedding's gradient.
  void finish();

 private:
  struct Bucket {
    // Runs of elements, counted from the start of the bucket.
    std::vector<View> partial;     // of gradients of which each tensor rank has a part
    std::vector<View> whole;       // that are reduced whole if the bucket is compressed
    std::vector<View> gaps;        // that belong to no parameter
    int writers = 0, missing = 0;  // writes of its gradients: in all, and left before the next reduction
    int number = 0;
    bool tied = false;  // has a gradient shared with another stage: not final before the exchange
    bool compressed = false;
    bool has_sum = false;  // of earlier micro-batches, to which the next reduction adds
  };
  // An emitted reduction. A bucket may have two in flight, from two passes.
  struct Reduction {
    Bucket* bucket = nullptr;
    bool for_good = false;
    View values = {};   // the result; absent: it is already where it is used
    View indices = {};  // of the values in the bucket; absent: it is all of them
    View whole = {};    // of Bucket::whole, one run after the other
  };
  // Emits the reduction and settles the earlier ones that need not wait any longer.
  void reduce(Bucket& bucket, const std::vector<OperationId>& after, bool for_good);
  void emit_reduction(Reduction& reduction, const std::vector<OperationId>& after);
  void gather_largest(Reduction& reduction, const std::vector<OperationId>& after);
  // Copies Bucket::whole out of the gradients, or back into them.
  void copy_whole(const Bucket& bucket, const View& packed, StreamId stream, bool back);
  // Takes and updates reductions in flight, oldest first, until `left` remain.
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
  double sent_share_;  // of gradients, if there is a residual
  View residual_;      // in the layout of the gradients; absent: all of them are sent
  std::vector<Bucket> buckets_;
  std::deque<Reduction> under_way_;
};

}  // namespace harness::gpt
