#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "program/lower.h"
#include "program/operation.h"

namespace harness::sim {

/// What a software makes of one kind of operation, beside what the operation itself needs.
struct KindRow {
  std::string_view kind = {};  // name of the operation
  bool backward = false;       // the row is for the backward pass; else for all phases that have no row of their own
  double bytes = 1;            // that move, for each byte that must
  double host_operations = 1;  // framework operations
};

/// The software whose step is predicted: which kernels it runs, what they move and what the host does meanwhile.
struct Software {
  std::string_view name = {};
  program::FusedSet fused = 0;       // forms that are one kernel
  double host_s = 0;                 // of one framework operation; 0: a CUDA graph, which the host launches whole
  double kernel_s = 0;               // fixed, of each kernel
  double step_s = 0;                 // of each step
  double gradient_bytes = 4;         // of an element in the all-reduce of gradients
  double accumulation_bytes = 0;     // a parameter and micro-batch: gradients are added by a kernel of their own
  double attention_score_bytes = 0;  // of unfused attention, forward: of each score, by softmax, mask and dropout
  double attention_score_bytes_back = 0;
  bool scatters_messages = false;  // between stages, tensor ranks send a share each and gather it there
  std::span<const KindRow> kinds = {};

  const KindRow& row_of(const program::Operation& operation) const;
};

/// How much of what the hardware promises is had.
struct Calibration {
  std::string_view name = {};
  std::string_view source = {};
  Software software;
  double product_share = 0;                                    // of the peak, of large products in full waves
  double product_ramp = 128;                                   // k at which a product has half of it
  double memory_share = 0.85;                                  // of the memory's rate
  double attention_forward = 0.62, attention_backward = 0.52;  // shares of the peak, of long sequences
  double attention_ramp = 500;                                 // keys at which attention has half of it
  double network_share = 0;                                    // of a node's rate towards others
  double network_hop_s = 20e-6;                                // a step of a ring between nodes
  double network_start_s = 60e-6;                              // of a collective between nodes
  double message_start_s = 30e-6;                              // of a send
  double taken_by_communication = 0.13;  // share of a GPU that computations lose to a communication beside them
  double kept_by_communication = 0.9;    // share of its speed that a communication keeps beside computations
};

/// "megatron-2022" or "harness"; throws Error that names both.
const Calibration& calibration_of(std::string_view name);

}  // namespace harness::sim
