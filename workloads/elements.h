#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/bf16.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness::workloads {

// Elements of a buffer as numbers, for output checks.

inline void encode_elements(program::DType type, std::span<const float> values, std::vector<std::byte>& to) {
  to.resize(values.size() * program::size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == program::DType::bf16) {
      const bf16 x = to_bf16(values[i]);
      std::memcpy(to.data() + 2 * i, &x, sizeof x);
    } else {
      std::memcpy(to.data() + 4 * i, &values[i], sizeof(float));
    }
  }
}

/// The i-th element of `bytes`.
inline float decode_element(program::DType type, const std::byte* bytes, std::size_t i) {
  if (type == program::DType::bf16) {
    bf16 x{};
    std::memcpy(&x, bytes + 2 * i, sizeof x);
    return to_float(x);
  }
  float x = 0;
  std::memcpy(&x, bytes + 4 * i, sizeof x);
  return x;
}

inline std::vector<double> read_elements(program::BufferAccess& memory, program::DType type,
                                         const program::View& view) {
  std::vector<std::byte> bytes(view.count * program::size_of(type));
  memory.read(view, bytes);
  std::vector<double> values(view.count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode_element(type, bytes.data(), i);
  return values;
}

/// The whole buffer of that name; absent if there is none.
inline program::View find_buffer(const program::Program& program, std::string_view name) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name == name) return {static_cast<program::BufferId>(b), 0, program.buffers[b].count};
  }
  return {};
}

}  // namespace harness::workloads
