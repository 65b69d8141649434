#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/bf16.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness {

// Elements of a buffer as numbers, for output checks.

inline void encode_elements(DType type, std::span<const float> values, std::vector<std::byte>& to) {
  to.resize(values.size() * static_cast<std::size_t>(size_of(type)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::bf16) {
      const bf16 x = to_bf16(values[i]);
      std::memcpy(to.data() + 2 * i, &x, sizeof x);
    } else {
      std::memcpy(to.data() + 4 * i, &values[i], sizeof(float));
    }
  }
}

/// The i-th element of `bytes`.
inline float decode_element(DType type, const std::byte* bytes, std::size_t i) {
  if (type == DType::bf16) {
    bf16 x{};
    std::memcpy(&x, bytes + 2 * i, sizeof x);
    return to_float(x);
  }
  float x = 0;
  std::memcpy(&x, bytes + 4 * i, sizeof x);
  return x;
}

inline std::vector<double> read_elements(BufferAccess& memory, DType type, const View& view) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.count * size_of(type)));
  memory.read(view, bytes);
  std::vector<double> values(static_cast<std::size_t>(view.count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode_element(type, bytes.data(), i);
  return values;
}

/// The whole buffer of that name; absent if there is none.
inline View find_buffer(const Program& program, std::string_view name) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name == name) return {static_cast<BufferId>(b), 0, program.buffers[b].count};
  }
  return {};
}

}  // namespace harness
