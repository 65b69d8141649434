#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace harness::config {

/// One kind of accelerator, from configs/hardware/NAME.yaml. A number that is 0 is unknown.
struct Hardware {
  std::string file;  // "h100-sxm"
  std::string name, source;
  std::vector<std::string> devices;         // full names as CUDA reports them; empty: not stated
  std::map<Precision, double> peaks_flops;  // dense; absent: unknown
  std::map<Precision, double> shares;       // of the peak, sustained by the best GEMMs; absent: unknown
  double watt = 0;                          // power limit of the board
  double shares_watt = 0;                   // of the board where `shares` were measured; 0: this one
  double memory_bytes = 0;                  // per accelerator
  double memory_bytes_per_s = 0;
  int compute_capability = 0;  // 90 is 9.0
  int sms = 0;
  double boost_clock_hz = 0;      // assumed by the peaks of the tensor cores
  double nvlink_bytes_per_s = 0;  // all links together, one direction
  double l2_bytes = 0;
  std::string gpu;               // in a machine's file: its GPU's file, which states all but `node`
  int gpus_of_node = 0;          // in the machine it usually comes in
  double node_bytes_per_s = 0;   // such a machine to others, over all its network cards, one direction
  int nics_of_node = 0;          // network cards that carry it
  double network_share = 0;      // of that rate, reached by large collectives; 0: the calibration's
  bool nvswitch = false;         // any GPU of such a machine reaches any other at the full rate of its links
  bool network_reduces = false;  // the switches between its nodes can reduce (SHARP)

  /// The file that describes the GPU itself.
  const std::string& gpu_file() const { return gpu.empty() ? file : gpu; }
  /// 0: unknown. fp16 falls back to bf16's peak and mxfp8 to fp8's: NVIDIA's data sheets have one row for both.
  double peak_flops(Precision precision) const;
  /// FLOP/s of the best GEMMs, in a loop at the board's power limit; 0: unknown. Without `shares`, 80 % of the peak.
  /// Rates scale with power to the 1.5: fitted to GB300 (1400 W) against GB200 (1200 W) and to the H100 of 500 W.
  double sustained_flops(Precision precision) const;
  /// Whether its NVLink switches, if any, may reduce (NVLink SHARP): from compute capability 9.0, or if none is stated.
  bool switches_may_reduce() const { return compute_capability == 0 || compute_capability >= 90; }
  /// Whether `devices` has this name. Compares full names: "NVIDIA A10" is not "NVIDIA A100-SXM4-40GB", and a MIG slice
  /// or a laptop version has another name because its peaks differ.
  bool is(std::string_view device) const;
};

/// Loads a hardware file by name ("h100-sxm", among the shipped ones) or path. Throws Error.
Hardware hardware_named(const std::string& name);

/// Finds the hardware file that lists this device: beside the configuration (hardware/*.yaml), else among the shipped
/// ones. Returns nullopt if none does. The key `hardware:` takes its `file`. Throws Error if a file cannot be read.
std::optional<Hardware> find_hardware_for_device(std::string_view device, const std::string& config_path);
/// Returns the message for a GPU that no file lists: which file to copy and which keys it needs.
std::string unknown_device_message(std::string_view device, const std::string& config_path);

}  // namespace harness::config
