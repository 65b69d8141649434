#include "workloads/product.h"

#include <cmath>

#include "base/error.h"
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
