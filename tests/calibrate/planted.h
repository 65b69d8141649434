#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "calibrate/laws.h"
#include "sim/device_time.h"

namespace harness::calibrate {

/// Times that are off by 2 %, as often above as below.
class Noise {
 public:
  double operator()(double seconds) { return seconds * std::exp(0.02 * normal_(engine_)); }

 private:
  std::mt19937 engine_{7};
  std::normal_distribution<double> normal_;
};

inline config::Calibration planted() {
  config::Calibration c;
  c.product_share = 0.8;
  c.product_ramp = 96;
  c.memory_share = 0.9;
  c.attention_forward = 0.6;
  c.attention_backward = 0.45;
  c.attention_ramp = 400;
  c.software.kernel_s = 3e-6;
  return c;
}

inline std::vector<ProductTime> products_by(const config::Calibration& law, const sim::Device& device,
                                            double bytes_per_element = 4) {
  Noise noise;
  std::vector<ProductTime> products;
  for (std::int64_t k = 32; k <= 4096; k *= 2) {
    for (const std::int64_t wide : {512, 2048}) {
      const double bytes = bytes_per_element * static_cast<double>(wide * k + k * wide + wide * wide);
      products.push_back({{wide, wide, k}, noise(sim::product_seconds(wide, wide, k, 1, bytes, device, law))});
    }
  }
  return products;
}

inline std::vector<AttentionTime> attentions_by(const config::Calibration& law, const sim::Device& device) {
  Noise noise;
  std::vector<AttentionTime> attentions;
  for (std::int64_t keys = 64; keys <= 8192; keys *= 2) {
    for (const bool backward : {false, true}) {
      const double flop = (backward ? 4.0 : 2.0) * static_cast<double>(16 * 64 * keys * keys);
      attentions.push_back(
          {{1, 16, 64, keys}, backward, flop, noise(sim::attention_seconds(flop, keys, backward, device, law))});
    }
  }
  return attentions;
}

/// A start and a rate at every size, with noise.
inline config::Curve straight(double start_s, double bytes_per_s, Noise& noise) {
  std::vector<config::CurvePoint> points;
  for (double bytes = 8; bytes < 2e6; bytes *= 4) points.push_back({bytes, noise(start_s + bytes / bytes_per_s)});
  return config::Curve(points);
}

/// A node of two ranks, of whose operations one does not follow the law of its kind.
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
  const sim::Device device{100e9, 20e9, 0};
  m.products[config::Precision::fp32] = products_by(planted(), device);
  m.attentions[config::Precision::fp32] = attentions_by(planted(), device);
  std::vector<config::CurvePoint> lawful, lawless;
  for (double bytes = 1024; bytes < 1e8; bytes *= 4) {
    lawful.push_back({bytes, noise(3e-6 + bytes / 20e9)});
    lawless.push_back({bytes, noise(5e-6 + bytes / 3e9)});
  }
  for (const char* name : {"layer_norm", "residual_add", "adamw", "bias_add"})
    m.computations[{config::Precision::fp32, name}] = config::Curve(lawful);
  m.computations[{config::Precision::fp32, "gelu"}] = config::Curve(lawless);
  m.computations[{config::Precision::fp32, "matmul"}] = config::Curve({{1e9, 1e-3}});
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "send"})
    m.communications[name] = straight(50e-6, 1e9, noise);
  return m;
}

}  // namespace harness::calibrate
