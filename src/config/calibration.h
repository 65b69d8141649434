#pragma once

#include <array>
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

/// A measured time of one kind of operation at one size (FLOP or bytes).
struct CurvePoint {
  double size = 0, seconds = 0;
};

/// Interpolates measured points linearly on log-log axes; exact at the points.
class Curve {
 public:
  Curve() = default;
  /// Takes points in any order; sizes and times must be above 0. Merges points of one size into their geometric mean.
  explicit Curve(std::vector<CurvePoint> points);

  /// Returns the running maximum of the points, because a larger size never takes less time.
  Curve rising() const;

  bool empty() const { return points_.empty(); }
  const std::vector<CurvePoint>& points() const { return points_; }  // ascending
  /// Below the smallest size, returns the time of the smallest point, which is mostly start-up. Above the largest size,
  /// grows in proportion. Returns 0 without points.
  double seconds_at(double size) const;

 private:
  std::vector<CurvePoint> points_;
};

/// The overhead of a software stack for one kind of operation.
struct KindCost {
  double bytes = 1;            // moved by its kernels per byte that must be moved
  double host_operations = 1;  // framework operations that the host issues
};

/// A library's fused attention.
enum class AttentionKernel : std::uint8_t { fa1, fa2, fa3, fa4, cudnn };

/// The predicted software stack: the kernels it runs, the bytes they move, and the host's work meanwhile.
struct Software {
  program::FusedSet fused = program::all_fused;  // forms that run as one kernel (program/program.h)
  double host_s = 0;                       // per framework operation; 0: the host launches the step as one CUDA graph
  double kernel_s = 0;                     // fixed cost per kernel
  double step_s = 0;                       // fixed cost per step
  double growth = 0;                       // relative, of the step time per doubling of the GPUs beyond 8
  std::map<Precision, double> cast_bytes;  // moved per element to quantise an operand of a GEMM
  double hop_s = 0;                        // until a stream sees that the work it waits for on another has ended
  double gradient_bytes = 4;               // per element in the gradient all-reduce, at most
  double accumulation_bytes = 0;           // per parameter and micro-batch, if a separate kernel accumulates gradients
  double score_bytes_forward = 4;          // unfused attention, per score: mask, softmax and dropout
  double score_bytes_backward = 6;
  double copies_forward = 0;  // moved to reorder heads, per byte of unfused attention's result
  double copies_backward = 0;
  /// Exponent q that combines host and GPU time where the host waits for messages or other ranks (pass_seconds() in
  /// sim/costs.h); with a large q the slower one decides. 0: the host never waits but runs ahead.
  double host_power = 0;
  /// Whether computations overlap tensor-parallel collectives; with sequence parallelism they always do.
  bool computes_beside_tensor = true;
  bool scatters_messages = false;  // each tensor rank sends a share to the next stage, which gathers the shares
  std::array<std::map<std::string, KindCost, std::less<>>, 2> kinds;  // by operation name; [1]: in the backward pass

  KindCost cost_of(const program::Operation& operation) const;
};

/// The error of predicting a published step with parameters fitted to all steps outside its group.
struct StepError {
  std::string id, gpu;     // gpu: a hardware file
  std::string group, lab;  // a group is one model, precision, GPU and source
  double error = 0;        // predicted / published - 1
};

/// Absolute relative errors, as shares.
struct Errors {
  double median = 0, nine_of_ten = 0;  // 50th and 90th percentile
  bool operator==(const Errors&) const = default;
};

/// The range of a value over the measured steps.
struct CalibratedRange {
  std::int64_t least = 0, most = 0;
  bool has(std::int64_t value) const { return value >= least && value <= most; }
};

/// Measured curves for where a law does not hold, such as on cores whose caches speed up small tensors.
struct MeasuredCurves {
  /// Computations by operation name, over FLOP, or over the bytes that must be moved if the operation has no FLOP.
  std::map<std::pair<Precision, std::string>, Curve> computations;
  int ranks = 0;  // of the measured collectives, on one node
  /// Communications within a node by operation name, over the size as the caller passes it (nccl-tests' "size").
  std::map<std::string, Curve, std::less<>> communications;

  /// Return nullptr if none was measured.
  const Curve* computation(Precision precision, std::string_view operation) const;
  const Curve* communication(std::string_view operation) const;
};

/// Communication within a node: a start-up time before bytes move, then a share of the links' rate.
struct WithinNode {
  double share = 0, start_s = 0;  // start_s: of a collective
  double message_s = 0;           // start-up time of a send
};

/// The shares of the hardware's nominal rates that a software stack reaches. Read from configs/calibration/NAME.yaml,
/// whose comments state the source of each number.
struct Calibration {
  std::string file;  // as named in the configuration
  std::string name, source;
  BackendKind backend = BackendKind::cuda;               // the backend whose step it predicts
  double product_share = 0;                              // of large GEMMs in full waves: share of the peak, or
  bool share_of_sustained = false;                       // of the rate that the board's best GEMMs sustain
  std::map<std::string, double> share_on;                // factor on `product_share`, by the GPU's hardware file
  double product_ramp = 128;                             // k at which a GEMM reaches half of that rate
  double memory_share = 0;                               // of the memory bandwidth
  std::optional<AttentionKernel> attention_kernel;       // sets the shares by GPU (sim/device_time.cpp); if none:
  double attention_forward = 0, attention_backward = 0;  // shares of the peak of fused attention on long sequences
  double attention_ramp = 500;                           // keys at which it reaches half of that share
  double network_share = 0;                              // of a node's bandwidth to the other nodes
  double network_start_s = 0;                            // start-up time of a collective between nodes
  double network_hop_s = 0;    // per ring step between nodes; 0: network_start_s covers all steps of the one algorithm
  double message_start_s = 0;  // start-up time of a send
  std::optional<WithinNode> within_node;  // if none: as measured on NVLink (sim/link_time.h)
  MeasuredCurves measured;
  double taken_by_communication = 0;  // share of a GPU that computations lose to an overlapping communication
  double kept_by_communication = 1;   // share of its speed that a communication keeps while overlapping computations
  double tensor_hidden = 0;           // share of a tensor-parallel collective hidden behind its own GEMM (tp_overlap)
  Software software;
  std::vector<StepError> errors;  // for each published step that it was compared with
  Errors change;                  // of the ratio of two steps that differ in one setting; 0: none compared
  std::vector<std::string> gpus;  // hardware files of the compared steps; empty: uncalibrated
  CalibratedRange ranks, hidden, sequence, message_bytes;

  /// Whether any of the compared steps ran on this GPU.
  bool has_measured(const Hardware& hardware) const;
};

/// Loads the shipped calibration of this name. Throws Error.
Calibration calibration_named(const std::string& name);

/// The default calibration for a step, chosen by the most similar software, and the reason: "tensor_parallel 8".
struct UsualCalibration {
  const char* file;
  std::string why;
};
/// Chooses for a configuration that names no calibration: by software, never by GPU (docs/simulation.md).
UsualCalibration usual_calibration(const Settings& baseline);

/// Reads the file that `text` names, with the lookup of hardware files.
std::optional<Calibration> read_calibration(const std::string& text, const Place& place, const std::string& config_path,
                                            Problems& problems);

}  // namespace harness::config
