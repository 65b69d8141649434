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
  std::vector<std::string> devices;  // its names as CUDA reports them, whole; empty: not said, or a machine's file
  std::map<Precision, double> peaks_flops;  // dense; absent: unknown
  std::map<Precision, double> shares;       // of the peak that the best products sustain; absent: unknown
  double watt = 0;                          // power limit of the board
  double shares_watt = 0;                   // of the board that `shares` were measured on; 0: of this one
  double memory_bytes = 0;                  // per accelerator
  double memory_bytes_per_s = 0;
  int compute_capability = 0;  // 90 is 9.0
  int sms = 0;
  double boost_clock_hz = 0;      // that the peaks of the tensor cores count with
  double nvlink_bytes_per_s = 0;  // all links together, one direction
  double l2_bytes = 0;
  std::string gpu;               // of a machine's file: the file of its GPU, which says all but `node`
  int gpus_of_node = 0;          // in the machines that it is usually part of
  double node_bytes_per_s = 0;   // of such a machine towards others, all its network cards together, one direction
  int nics_of_node = 0;          // network cards that carry it
  double network_share = 0;      // of that rate, by large collectives; 0: as the calibration has it
  bool nvswitch = false;         // every GPU of such a machine reaches every other at the full rate of its links
  bool network_reduces = false;  // the switches between its nodes add up (SHARP)

  /// The file that describes the GPU itself.
  const std::string& gpu_file() const { return gpu.empty() ? file : gpu; }
  /// 0: unknown. fp16 has bf16's and mxfp8 fp8's where they have none of their own: one row of NVIDIA's data sheets is
  /// of both.
  double peak_flops(Precision precision) const;
  /// FLOP/s of the best products, in a loop at the board's power limit; 0: unknown. Without `shares` it is 80 % of the
  /// peak. Rates go with power to the 1.5: fitted to GB300 (1400 W) against GB200 (1200 W) and to the H100 of 500 W.
  double sustained_flops(Precision precision) const;
  /// Whether its NVLink switches, where it has some, may add up (NVLink SHARP): from compute capability 9.0 on, and
  /// where none is stated.
  bool switches_may_reduce() const { return compute_capability == 0 || compute_capability >= 90; }
  /// Whether `devices` has this name. They are compared whole: "NVIDIA A10" is not "NVIDIA A100-SXM4-40GB", and a slice
  /// of a GPU (MIG) or its laptop form has another name because it has other peaks.
  bool is(std::string_view device) const;
};

/// The hardware file that a person names: "h100-sxm" among those that come with the program, or a path. Throws Error.
Hardware hardware_named(const std::string& name);

/// The hardware file that has this device name among its `devices`: beside the configuration (hardware/*.yaml), else
/// among those that come with the program; nullopt if none has. `hardware:` knows it by its `file`. Throws Error if a
/// file cannot be read.
std::optional<Hardware> find_hardware_for_device(std::string_view device, const std::string& config_path);
/// A message for a person whose GPU no file names: which file to copy and which keys it needs.
std::string unknown_device_message(std::string_view device, const std::string& config_path);

}  // namespace harness::config
