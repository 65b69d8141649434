#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/backend.h"
#include "config/files.h"
#include "config/hardware.h"
#include "config/settings.h"
#include "program/operation.h"
#include "program/program.h"

namespace harness::config {

/// A measured time of one kind of operation, over its size (FLOP or bytes).
struct CurvePoint {
  double size = 0, seconds = 0;
};

/// Measured points, joined by straight lines on logarithmic axes: a law of any shape between them, and exact at them.
class Curve {
 public:
  Curve() = default;
  /// In any order, of sizes and times above 0; of several with one size the mean of their logarithms.
  explicit Curve(std::vector<CurvePoint> points);

  /// The least curve above it that never falls: what is larger takes no less.
  Curve rising() const;

  bool empty() const { return points_.empty(); }
  const std::vector<CurvePoint>& points() const { return points_; }  // ascending
  /// Below all sizes it is the time of the smallest, which is mostly a start. Above them it grows in
  /// proportion. 0 without points.
  double seconds_at(double size) const;

 private:
  std::vector<CurvePoint> points_;
};

/// The cost that a software adds to one kind of operation.
struct KindCost {
  double bytes = 1;            // that its kernels move, for each byte that must be moved
  double host_operations = 1;  // framework operations
};

/// A library's fused attention.
enum class AttentionKernel : std::uint8_t { fa1, fa2, fa3, fa4, cudnn };

/// The software whose step is predicted: which kernels it runs, what they move, and what the host does meanwhile.
struct Software {
  program::FusedSet fused = program::all_fused;  // forms that are one kernel (program/lower.h)
  double host_s = 0;    // of one framework operation; 0: the host launches the step whole, as a CUDA graph
  double kernel_s = 0;  // fixed, of each kernel
  double step_s = 0;    // of each step
  double growth = 0;    // of a step, for each doubling of the GPUs beyond 8
  std::map<Precision, double> cast_bytes;  // to make fewer bits of an element of a product's factor
  double hop_s = 0;                        // until a stream notices that what it waits for has ended on another
  double gradient_bytes = 4;               // of an element in the all-reduce of gradients, at most
  double accumulation_bytes = 0;   // of a parameter and micro-batch, where a kernel of its own adds gradients up
  double score_bytes_forward = 4;  // of unfused attention, for each score: mask, softmax and dropout
  double score_bytes_backward = 6;
  double copies_forward = 0;  // of unfused attention's result, to put heads in order
  double copies_backward = 0;
  /// How near the slower of host and GPU decides a pass whose host waits for messages or for other ranks
  /// (sim/device_time.h); 0: the host never waits, but runs ahead.
  double host_power = 0;
  /// While tensor ranks communicate; with sequence parallelism it always does.
  bool computes_beside_tensor = true;
  bool scatters_messages = false;  // between stages, tensor ranks send a share each and gather the shares there
  std::map<std::pair<std::string, bool>, KindCost> kinds;  // by operation name, and whether of the backward pass

  KindCost cost_of(const program::Operation& operation) const;
};

/// A published step against its prediction by numbers that are fitted to all steps but those of its group.
struct StepError {
  std::string id, gpu;     // a hardware file
  std::string group, lab;  // a group is a model in one precision on one GPU, of one source
  double error = 0;        // predicted / published - 1
};

/// Sizes of errors, as shares.
struct Errors {
  double median = 0, nine_of_ten = 0;  // the latter is what 9 of 10 do not exceed
};

/// From the least to the most that the measured steps had.
struct CalibratedRange {
  std::int64_t least = 0, most = 0;
  bool has(std::int64_t value) const { return value >= least && value <= most; }
};

/// Curves that were measured where a law does not hold, such as on cores whose caches make small tensors quick.
struct MeasuredCurves {
  /// Computations by operation name: over its FLOP where it has some, else over the bytes that it must move.
  std::map<std::pair<Precision, std::string>, Curve> computations;
  int ranks = 0;  // of the collectives, on one node
  /// Communications within a node by operation name, over the size as the caller passes it (nccl-tests' "size").
  std::map<std::string, Curve, std::less<>> communications;

  /// nullptr: none was measured.
  const Curve* computation(Precision precision, std::string_view operation) const;
  const Curve* communication(std::string_view operation) const;
};

/// The time of a communication within a node before its bytes move, and its share of the links' rate afterwards.
struct WithinNode {
  double share = 0, start_s = 0;  // of a collective
  double message_s = 0;           // of a send
};

/// How much of what the hardware promises a software gets: from configs/calibration/NAME.yaml, whose comments have the
/// source of each number.
struct Calibration {
  std::string file;  // as the configuration calls it
  std::string name, source;
  BackendKind backend = BackendKind::cuda;               // whose step it predicts
  double product_share = 0;                              // by large products in full waves: of the peak, or
  bool share_of_sustained = false;                       // of what the board's best products sustain
  std::map<std::string, double> share_on;                // of `product_share`, on the GPU of a hardware file
  double product_ramp = 128;                             // k at which a product reaches half of it
  double memory_share = 0;                               // of the memory's rate
  std::optional<AttentionKernel> attention_kernel;       // whose shares follow from the GPU (sim/device_time.h); else
  double attention_forward = 0, attention_backward = 0;  // shares of the peak, by fused attention over long sequences
  double attention_ramp = 500;                           // keys at which it reaches half of it
  double network_share = 0;                              // of a node's rate towards the others
  double network_start_s = 0;                            // of a collective between nodes
  double network_hop_s = 0;    // of a ring's step between nodes; 0: the start has all steps, and NCCL has one way alone
  double message_start_s = 0;  // of a send
  std::optional<WithinNode> within_node;  // else as NVLink was measured (sim/link_time.h)
  MeasuredCurves measured;
  double taken_by_communication = 0;  // share of a GPU that computations lose to a communication beside them
  double kept_by_communication = 1;   // share of its speed that a communication keeps beside computations
  double tensor_hidden = 0;  // share of a tensor collective that runs beside parts of its own product (tp_overlap)
  Software software;
  std::vector<StepError> errors;  // of the published steps that it was compared with
  Errors change;                  // of ratios of two steps that differ in one setting; 0: nothing was compared
  std::vector<std::string> gpus;  // files of the hardware whose steps it was compared with; empty: uncalibrated
  CalibratedRange ranks, hidden, sequence, message_bytes;

  /// Whether some of the steps that it was compared with ran on this GPU.
  bool has_measured(const Hardware& hardware) const;
};

/// The calibration that comes with the program under this name. Throws Error.
Calibration calibration_named(const std::string& name);

/// The calibration whose software a step is most like, and the reason for a person: "tensor_parallel 8".
struct UsualCalibration {
  const char* file;
  std::string why;
};
/// For a configuration that names no calibration. The software decides, never the GPU (docs/simulation.md).
UsualCalibration usual_calibration(const Settings& baseline);

/// The file that `text` names, found as hardware files are.
std::optional<Calibration> read_calibration(const std::string& text, const Place& place, const std::string& config_path,
                                            Problems& problems);

}  // namespace harness::config
