#pragma once

#include "workloads/workload.h"

namespace harness::workloads {

// The workloads that repeat one operation: a step is `repetitions` of it in a row.

const Workload& collective_workload();
const Workload& gemm_workload();
const Workload& attention_workload();

std::unique_ptr<OutputCheck> collective_check(const config::Settings& settings, const program::Layout& layout,
                                              const program::Coordinates& at, const program::Program& program);

/// Adds what the label calls an operation of a training step, "qkv, forward" or "qkv weight gradient", if it is new.
void add_use(std::vector<std::string>& uses, const program::Label& label);

/// The axes along which the members of a collective differ.
program::AxisSet axes_of(config::CollectiveOver over);

/// The element type of the buffers of an operation.
inline program::DType element_type(const config::Settings& settings) {
  return config::storage_of(settings.precision);
}

}  // namespace harness::workloads
