#pragma once

#include "workloads/workload.h"

namespace harness {

// The workloads that repeat one operation: a step is `repetitions` of it in a row.

const Workload& collective_workload();
const Workload& gemm_workload();
const Workload& attention_workload();

std::unique_ptr<OutputCheck> collective_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                              const Program& program);

/// The axes along which the members of a collective differ.
AxisSet axes_of(CollectiveOver over);

/// The element type of the buffers of an operation.
inline DType element_type(const Settings& settings) {
  return settings.precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

}  // namespace harness
