#pragma once

#include <memory>
#include <string>

#include "config/settings.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness {

// The workloads that repeat one operation: a step is `repetitions` of it in a row on the stream that a training step
// has it on, then the closing all-reduce. Settings must have passed plan's check_layout.

ProgramSet collective_programs(const Settings& settings, const Layout& layout);
ProgramSet gemm_programs(const Settings& settings, const Layout& layout);
ProgramSet attention_programs(const Settings& settings, const Layout& layout);

/// What a step of these workloads is made of, and how its rate is counted.
struct Point {
  std::string operation;  // "all_reduce", "matmul", …
  std::int64_t repetitions = 0;
  double bytes = 0;       // of one: a collective's size as nccl-tests counts it; else what is read and written once
  double bus_factor = 0;  // bus bandwidth / algorithm bandwidth (nccl-tests); 0: no collective
};
Point point_of(const Settings& settings, const Layout& layout);

/// Whether one rank's step computed what it must. prepare() puts known numbers into the buffers, then a step must run
/// on all ranks, then check() throws an Error that names operation, element, what it is and what it should be.
class OutputCheck {
 public:
  virtual ~OutputCheck() = default;
  virtual void prepare(BufferAccess& memory) const = 0;
  virtual void check(BufferAccess& memory) const = 0;
};
/// `program` is this rank's. The three that make_output_check (workload.h) chooses from.
std::unique_ptr<OutputCheck> collective_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                              const Program& program);
std::unique_ptr<OutputCheck> gemm_check(const Settings& settings, const Program& program);
std::unique_ptr<OutputCheck> attention_check(const Settings& settings, const Program& program);

}  // namespace harness
