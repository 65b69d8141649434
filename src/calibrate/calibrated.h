#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/measure.h"
#include "config/calibration.h"

namespace harness::calibrate {

/// Whether a prediction times the operation by its bytes: true for all but products and attention.
bool moves_memory(const std::string& operation);

/// A start and a rate: seconds = start_s + size / rate.
struct Line {
  double start_s = 0, rate = 0;
};
/// The line with the least sum of relative errors, each with its weight 1: a point that is far off moves it little.
/// Needs a point.
Line fit_line(const std::vector<config::CurvePoint>& points);

/// The device as it was measured, and a calibration whose computations and collectives are the measured curves. Only
/// links have a law beside them, a start and a rate, for groups of other sizes than the measured one.
struct Calibrated {
  std::map<config::Precision, double> peak_flops;  // of the best product, at the clocks of lasting work
  double memory_bytes_per_s = 0;                   // the best of what moves memory
  double link_bytes_per_s = 0;                     // between ranks of a node; 0: not measured
  double node_bytes_per_s = 0;                     // between nodes; 0: not measured
  config::Calibration calibration;
};

/// Throws Error if no product was measured, or nothing that moves memory.
Calibrated calibrated_by(const Measured& measured);

/// The text of a hardware file: the device and the links as they were measured. What nobody told of the device is left
/// out.
std::string hardware_text(const Measured& measured, const Calibrated& found);

/// The text of a calibration that names that file, `hardware`, with its layer's sizes as the range that was measured.
std::string calibration_text(const Measured& measured, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware);

}  // namespace harness::calibrate
