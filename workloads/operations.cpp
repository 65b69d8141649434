#include "workloads/operations.h"

#include <cstring>

#include "base/floats.h"
#include "workloads/step.h"

namespace harness::workloads {

void encode_elements(program::DType type, std::span<const float> values, std::vector<std::byte>& to) {
  to.resize(values.size() * program::size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == program::DType::bf16) {
      const bf16 x = to_bf16(values[i]);
      std::memcpy(to.data() + 2 * i, &x, sizeof x);
    } else if (type == program::DType::f16) {
      const f16 x = to_f16(values[i]);
      std::memcpy(to.data() + 2 * i, &x, sizeof x);
    } else {
      std::memcpy(to.data() + 4 * i, &values[i], sizeof(float));
    }
  }
}

float decode_element(program::DType type, const std::byte* bytes, std::size_t i) {
  if (type == program::DType::bf16) {
    bf16 x{};
    std::memcpy(&x, bytes + 2 * i, sizeof x);
    return to_float(x);
  }
  if (type == program::DType::f16) {
    f16 x{};
    std::memcpy(&x, bytes + 2 * i, sizeof x);
    return to_float(x);
  }
  float x = 0;
  std::memcpy(&x, bytes + 4 * i, sizeof x);
  return x;
}

program::View find_buffer(const program::Program& program, std::string_view name) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name == name) return {static_cast<program::BufferId>(b), 0, program.buffers[b].count};
  }
  return {};
}

program::View Operands::random(const char* name, std::int64_t count) {
  const program::View v = empty(name, count);
  const program::View drawn = type_ == program::DType::f32 ? v : b_.buffer("drawn", program::DType::f32, count);
  b_.emit(compute_stream, program::Initialize{drawn, next_, program::Axis::tensor, 1, count, count, 1, 0, 1},
          {"operand", program::Phase::setup});
  if (type_ != program::DType::f32)
    b_.emit(compute_stream, program::Convert{drawn, v}, {"operand", program::Phase::setup});
  next_ += count;
  return v;
}

program::ProgramSet same_on_all_ranks(const program::Layout& layout, program::Program program) {
  program::ProgramSet set;
  set.layout = layout;
  set.groups = {{"world", program::AxisSet::all(), {}}};
  set.roles.push_back(std::move(program));
  return set;
}

}  // namespace harness::workloads
