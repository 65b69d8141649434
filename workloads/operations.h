#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program/links.h"
#include "workloads/workload.h"

namespace harness::workloads {

// Workloads that repeat one operation: a step runs it `repetitions` times in a row.

const Workload& collective_workload();
const Workload& gemm_workload();
const Workload& attention_workload();

std::unique_ptr<OutputCheck> collective_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                              const Program& program);

/// Returns the Program of a step that repeats these operations, which start together, on one stream. The label's layer
/// is the number of the repetition. Begins and ends the step.
Program repeated(ProgramBuilder& builder, StepFrame& frame, const Settings& settings, const Layout& layout,
                 StreamId stream, const std::vector<Action>& actions, Label label);

/// Adds the label's name for an operation of a training step, "qkv, forward" or "qkv weight gradient", if it is new.
void add_use(std::vector<std::string>& uses, const Label& label);

/// The ranks that take part in a collective.
Group collective_group(const Settings& settings);

/// Returns the upper bound that the links set on the bus bandwidth of a collective workload; 0 for any other workload,
/// or if a link that it depends on is not known (program/links.h). node_of[rank]: for every rank of the layout.
double max_bus_bandwidth(const Settings& settings, const Layout& layout, std::span<const int> node_of,
                         const program::Links& links);

/// The element type of the buffers of an operation.
inline DType element_type(const Settings& settings) {
  return config::storage_of(settings.precision);
}

// Write and read the i-th element of a buffer's bytes as a number, for output checks.
void encode_element(DType type, std::byte* bytes, std::size_t i, float value);
float decode_element(DType type, const std::byte* bytes, std::size_t i);

}  // namespace harness::workloads
