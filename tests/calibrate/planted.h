#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "calibrate/calibrate.h"

namespace harness::calibrate {

/// Times that are off by 2 %, as often above as below.
class Noise {
 public:
  double operator()(double seconds) { return seconds * std::exp(0.02 * normal_(engine_)); }

 private:
  std::mt19937 engine_{7};
  std::normal_distribution<double> normal_;
};

/// A start and a rate at every size, with noise.
inline config::Curve straight(double start_s, double bytes_per_s, Noise& noise) {
  std::vector<config::CurvePoint> points;
  for (double bytes = 8; bytes < 2e6; bytes *= 4) points.push_back({bytes, noise(start_s + bytes / bytes_per_s)});
  return config::Curve(points);
}

/// A node of two ranks.
inline Measured node_of_two() {
  Noise noise;
  Measured m;
  m.ranks = m.ranks_of_node = 2;
  m.host = "node1";
  m.device = {.name = "CPU \"fast\": 2 GHz", .memory_bytes = 8e9};
  m.rounds = 3;
  m.took_s = 12;
  m.hop_s = 7e-6;
  m.step_s = 40e-6;
  m.slowed_computing = 1.25;
  m.largest_message_bytes = 1 << 20;
  for (std::int64_t k = 64; k <= 4096; k *= 2)
    m.products[config::Precision::fp32].push_back(
        {{512, 512, k}, 2.0 * 512 * 512 * static_cast<double>(k + 96) / 1e11});
  std::vector<config::CurvePoint> quick, slow;
  for (double bytes = 1024; bytes < 1e8; bytes *= 4) {
    quick.push_back({bytes, noise(3e-6 + bytes / 20e9)});
    slow.push_back({bytes, noise(5e-6 + bytes / 3e9)});
  }
  for (const char* name : {"layer_norm", "residual_add", "adamw", "bias_add"})
    m.computations[{config::Precision::fp32, name}] = config::Curve(quick);
  m.computations[{config::Precision::fp32, "gelu"}] = config::Curve(slow);
  m.computations[{config::Precision::fp32, "matmul"}] = config::Curve({{1e8, 1.5e-3}, {1e9, 12e-3}});
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "send"})
    m.communications[name] = straight(50e-6, 1e9, noise);
  return m;
}

}  // namespace harness::calibrate
