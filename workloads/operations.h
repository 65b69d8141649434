#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program/links.h"
#include "workloads/workload.h"

namespace harness::workloads {

// The workloads that repeat one operation: a step is `repetitions` of it in a row.

const Workload& collective_workload();
const Workload& gemm_workload();
const Workload& attention_workload();

std::unique_ptr<OutputCheck> collective_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                              const Program& program);

/// Adds what the label calls an operation of a training step, "qkv, forward" or "qkv weight gradient", if it is new.
void add_use(std::vector<std::string>& uses, const Label& label);

/// The axes along which the members of a collective differ.
AxisSet axes_of(config::CollectiveOver over);

/// The bus bandwidth that the links allow at most, for settings whose workload is one collective; 0 for any other, and
/// where a link that it depends on is not known (program/links.h). node_of[rank]: for every rank of the layout.
double max_bus_bandwidth(const Settings& settings, const Layout& layout, std::span<const int> node_of,
                         const program::Links& links);

/// The element type of the buffers of an operation.
inline DType element_type(const Settings& settings) {
  return config::storage_of(settings.precision);
}

// Elements of a buffer as numbers, for output checks.

void encode_elements(DType type, std::span<const float> values, std::vector<std::byte>& to);
/// The i-th element of `bytes`.
float decode_element(DType type, const std::byte* bytes, std::size_t i);

}  // namespace harness::workloads
