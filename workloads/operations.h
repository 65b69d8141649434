#pragma once

#include <span>
#include <vector>

#include "program/builder.h"
#include "program/links.h"
#include "program/memory.h"
#include "program/program.h"
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

/// The bus bandwidth that the links allow at most, for settings whose workload is one collective; 0 for any other, and
/// where a link that it depends on is not known (program/links.h). node_of[rank]: for every rank of the layout.
double max_bus_bandwidth(const config::Settings& settings, const program::Layout& layout, std::span<const int> node_of,
                         const program::Links& links);

/// The element type of the buffers of an operation.
inline program::DType element_type(const config::Settings& settings) {
  return config::storage_of(settings.precision);
}

// Elements of a buffer as numbers, for output checks.

void encode_elements(program::DType type, std::span<const float> values, std::vector<std::byte>& to);
/// The i-th element of `bytes`.
float decode_element(program::DType type, const std::byte* bytes, std::size_t i);
/// The whole buffer of that name; absent if there is none.
program::View find_buffer(const program::Program& program, std::string_view name);

// Shared by the workloads that compute one operation, gemm and attention.

/// Makes the buffers of an operation. Random numbers: matrix units draw less power on zeros and run faster.
class Operands {
 public:
  Operands(program::ProgramBuilder& builder, const config::Settings& settings)
      : b_(builder), type_(element_type(settings)) {}
  program::View random(const char* name, std::int64_t count);
  program::View empty(const char* name, std::int64_t count) {
    return b_.buffer(name, type_, count, program::BufferKind::persistent);
  }

 private:
  program::ProgramBuilder& b_;
  program::DType type_;
  std::int64_t next_ = 0;  // index of the next number that is drawn
};

/// A job whose ranks all run the same Program and meet in one group, `world`.
program::ProgramSet same_on_all_ranks(const program::Layout& layout, program::Program program);

}  // namespace harness::workloads
