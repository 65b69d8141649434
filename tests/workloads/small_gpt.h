#pragma once

#include <cstdint>

#include "config/settings.h"

namespace harness::workloads {

// A step whose bytes can be told by hand.

inline const config::Model small_gpt{"m", 4, 64, 4, 256, 32};
inline constexpr std::int64_t small_batch = 2;                     // sequences of a micro-batch
inline constexpr std::int64_t small_rows = 32 * small_batch;       // s b
inline constexpr std::int64_t small_stream = 2 * small_rows * 64;  // bytes of a bf16 residual stream, 2 s b h

}  // namespace harness::workloads
