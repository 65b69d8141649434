#pragma once

#include <array>
#include <span>
#include <vector>

#include "program/builder.h"
#include "workloads/elements.h"
#include "workloads/operations.h"

namespace harness::workloads {

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

/// Compares some elements of the result with their definition. The operands are random since init.
class ProductCheck : public OutputCheck {
 public:
  ProductCheck(const config::Settings& settings, const program::Program& program, const char* name)
      : s_(settings), program_(program), type_(element_type(settings)), name_(name) {}
  void prepare(program::BufferAccess& /*memory*/) const override {}

 protected:
  program::View buffer(const char* name) const { return find_buffer(program_, name); }
  /// `count` elements, `stride` apart.
  std::vector<double> line(program::BufferAccess& memory, const program::View& in, std::int64_t first,
                           std::int64_t stride, std::int64_t count) const;
  /// Throws Error if they differ by more than rounding. `size`: how large such a number typically is.
  void compare(const std::string& where, double found, double due, double size) const;

  config::Settings s_;
  const program::Program& program_;
  program::DType type_;

 private:
  const char* name_;
};

double dot(std::span<const double> a, std::span<const double> b);
/// The indices to look at: first, last and some in between.
std::array<std::int64_t, 4> samples(std::int64_t count);

}  // namespace harness::workloads
