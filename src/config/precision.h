#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "program/view.h"

namespace harness::config {

/// In which numbers a step computes.
enum class Precision : std::uint8_t {
  fp32,
  bf16,
  tf32,  // fp32 storage, matrix products on tensor cores with 10-bit mantissas; cuda only
  fp16,  // with dynamic loss scaling
  // The four products of a layer in fewer bits, everything else as with bf16:
  fp8,    // with one scale of a tensor (Transformer Engine: current scaling)
  mxfp8,  // with a scale of 32 elements (Transformer Engine: MXFP8BlockScaling)
  nvfp4,  // with a scale of 16 elements; predictions only
};

struct PrecisionRow {
  Precision precision;
  const char* name;           // as configurations, hardware files and results have it
  program::DType storage;     // of activations, and of the weights that products read
  int product_mantissa_bits;  // of a product's factors as they are multiplied
  int product_bits;           // of such a factor in memory
};
inline constexpr std::array<PrecisionRow, 7> precision_table{{
    {Precision::fp32, "fp32", program::DType::f32, program::row_of(program::DType::f32).mantissa_bits, 32},
    {Precision::bf16, "bf16", program::DType::bf16, program::row_of(program::DType::bf16).mantissa_bits, 16},
    {Precision::tf32, "tf32", program::DType::f32, 10, 32},
    {Precision::fp16, "fp16", program::DType::f16, program::row_of(program::DType::f16).mantissa_bits, 16},
    {Precision::fp8, "fp8", program::DType::bf16, 3, 8},
    {Precision::mxfp8, "mxfp8", program::DType::bf16, 3, 8},
    {Precision::nvfp4, "nvfp4", program::DType::bf16, 1, 4},
}};

/// For parse_choice() and print_choice() (config/choice.h).
inline constexpr auto precision_choices = [] {
  std::array<std::pair<const char*, Precision>, precision_table.size()> choices{};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {precision_table[i].name, precision_table[i].precision};
  }
  return choices;
}();

inline constexpr const PrecisionRow& row_of(Precision precision) {
  return precision_table[static_cast<std::size_t>(precision)];
}
inline constexpr const char* name_of(Precision precision) {
  return row_of(precision).name;
}
/// Whether products of layers have fewer bits than what else is computed.
inline constexpr bool is_low(Precision precision) {
  return row_of(precision).product_bits < 16;
}
/// Whether products of layers take 8-bit floats.
inline constexpr bool has_fp8_products(Precision precision) {
  return row_of(precision).product_bits == 8;
}
inline constexpr program::DType storage_of(Precision precision) {
  return row_of(precision).storage;
}

/// nullptr if there is none of that name.
inline constexpr const PrecisionRow* find_precision(std::string_view name) {
  for (const PrecisionRow& row : precision_table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

static_assert(
    [] {
      for (std::size_t i = 0; i < precision_table.size(); ++i) {
        if (static_cast<std::size_t>(precision_table[i].precision) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of Precision");

}  // namespace harness::config
