#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// Where each buffer of a Program lies in one allocation. Transient buffers share memory when every access of one
/// comes before every access of the other, by stream order and waits.
struct Arena {
  static constexpr std::int64_t alignment_bytes = 256;
  std::vector<std::int64_t> offset_bytes;  // per buffer
  std::int64_t bytes = 0;                  // the whole allocation
  std::int64_t persistent_bytes = 0;       // weights, moments, inputs, outputs
  std::int64_t transient_bytes = 0;        // the shared part
};
Arena plan_arena(const Program& program);

}  // namespace harness::program
