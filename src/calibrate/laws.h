#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibrate/measure.h"
#include "config/calibration.h"
#include "sim/device_time.h"

namespace harness::calibrate {

/// Whether a prediction times the operation by its bytes: true for all but products and attention.
bool moves_memory(const std::string& operation);

/// How well a law says what was measured: the mean size of its errors, as a share.
struct LawError {
  std::string what;
  int points = 0;
  double error = 0;
};

/// A start and a rate: seconds = start_s + size / rate.
struct Line {
  double start_s = 0, rate = 0;
  double seconds_at(double size) const { return start_s + size / rate; }
};
/// The line with the least sum of relative errors, each with its weight 1: a point that is far off moves it little. Its
/// rate is no larger than `most` where that is given. Needs a point.
Line fit_line(const std::vector<config::CurvePoint>& points, double most = 0);

/// The device and the laws of a prediction, fitted to the measured points.
struct Laws {
  std::map<config::Precision, double> peak_flops;  // the best product
  double memory_bytes_per_s = 0;                   // the best of what moves memory
  double link_bytes_per_s = 0;                     // between ranks of a node; 0: not measured
  double node_bytes_per_s = 0;                     // between nodes
  config::Calibration calibration;                 // the scalars, and the curves that no law says well
  std::vector<LawError> errors;                    // by curve
};

/// Throws Error if there is no product or no memory to fit to.
Laws fit(const Measured& measured);

/// Product and attention laws alone, with all else as in `calibration`: sets their shares and ramps, returns the mean
/// error.
double fit_products(const std::vector<ProductTime>& products, double bytes_per_element, const sim::Device& device,
                    config::Calibration& calibration);
double fit_attention(const std::vector<AttentionTime>& attentions, const sim::Device& device,
                     config::Calibration& calibration);

}  // namespace harness::calibrate
