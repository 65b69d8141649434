#pragma once

#include <string>
#include <vector>

#include "selftest/operation_cases.h"

namespace harness::selftest {

/// Puts an OperationCase together: names its buffers and says how they are filled.
class CaseBuilder {
 public:
  explicit CaseBuilder(program::DType type, bool tf32 = false);

  program::DType type() const { return type_; }
  program::View normal(const std::string& name, std::int64_t count, double deviation = 1, double mean = 0) {
    return normal(name, type_, count, deviation, mean);
  }
  program::View normal(const std::string& name, program::DType type, std::int64_t count, double deviation = 1,
                       double mean = 0);
  /// From `first` on, so many.
  program::View whole_numbers(const std::string& name, std::int64_t count, std::int64_t limit, std::int64_t first = 0);
  /// As documents of so many tokens have them.
  program::View position_ids(std::int64_t count, std::int64_t document);
  program::View constant(const std::string& name, program::DType type, double value);
  /// To be written only.
  program::View output(const std::string& name, std::int64_t count) { return output(name, type_, count); }
  program::View output(const std::string& name, program::DType type, std::int64_t count);
  /// To be written, or added to: then full of numbers.
  program::View result(const std::string& name, program::DType type, std::int64_t count, bool accumulate) {
    return accumulate ? normal(name, type, count) : output(name, type, count);
  }

  /// Runs before, on the oracle.
  CaseBuilder& prepare(const program::Action& action);
  CaseBuilder& at(const program::Layout& layout, int rank);
  CaseBuilder& attention(config::AttentionKind kind);
  /// Of a product whose factors are 8-bit floats, in a case that is else of bf16.
  CaseBuilder& precision(config::Precision of_products);
  CaseBuilder& large();
  OperationCase take(const program::Action& action, const std::string& name);

 private:
  program::View add(const std::string& name, program::DType type, std::int64_t count, const Filling& filling);
  program::DType type_;
  OperationCase case_;
};

using Cases = std::vector<OperationCase>;
void add_elementwise_cases(Cases& cases, program::DType type);
void add_embedding_cases(Cases& cases, program::DType type);
void add_norm_cases(Cases& cases, program::DType type);
void add_product_cases(Cases& cases, program::DType type, bool tf32);
void add_quantise_cases(Cases& cases, program::DType type);
void add_fp8_product_cases(Cases& cases, config::Precision precision);
void add_attention_cases(Cases& cases, program::DType type, bool tf32);
void add_rope_cases(Cases& cases, program::DType type);
void add_loss_cases(Cases& cases, program::DType type);
void add_optimizer_cases(Cases& cases, program::DType weights);
void add_loss_scaling_cases(Cases& cases);
void add_compression_cases(Cases& cases);

}  // namespace harness::selftest
