#include "workloads/operations.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/floats.h"
#include "workloads/step.h"

namespace harness::workloads {
namespace {

// The error that rounding may cause: products of tf32 and fp16 have 10 bits of mantissa, of bf16 7 and so has what is
// written.
double rounding_of(config::Precision precision) {
  const int bits = config::row_of(precision).product_mantissa_bits;
  if (bits <= 7) return 2e-2;
  return bits <= 10 ? 5e-3 : 1e-4;
}

}  // namespace

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

std::vector<double> read_elements(program::BufferAccess& memory, program::DType type, const program::View& view) {
  std::vector<std::byte> bytes(view.count * program::size_of(type));
  memory.read(view, bytes);
  std::vector<double> values(view.count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode_element(type, bytes.data(), i);
  return values;
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

std::vector<double> ProductCheck::line(program::BufferAccess& memory, const program::View& in, std::int64_t first,
                                       std::int64_t stride, std::int64_t count) const {
  if (stride == 1) return read_elements(memory, type_, in.part(first, count));
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(read_elements(memory, type_, in.part(first + i * stride, 1)).front());
  }
  return values;
}

void ProductCheck::compare(const std::string& where, double found, double due, double size) const {
  if (std::abs(found - due) <= rounding_of(s_.precision) * (size + std::abs(due))) return;
  fail(
      "{} gives a wrong result: {} is {:g} and should be {:g}. Do not trust its time. Look at what the case changed "
      "and "
      "report it to the library's authors",
      name_, where, found, due);
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::array<std::int64_t, 4> samples(std::int64_t count) {
  return {0, count - 1, count / 2, count * 5 / 7};
}

}  // namespace harness::workloads
