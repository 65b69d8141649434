#pragma once

#include <string>
#include <vector>

#include "selftest/operation_cases.h"

namespace harness {

/// Puts an OperationCase together: names its buffers and says how they are filled.
class CaseBuilder {
 public:
  explicit CaseBuilder(DType type, bool tf32 = false);

  DType type() const { return type_; }
  View normal(const std::string& name, std::int64_t count, double deviation = 1, double mean = 0) {
    return normal(name, type_, count, deviation, mean);
  }
  View normal(const std::string& name, DType type, std::int64_t count, double deviation = 1, double mean = 0);
  View whole_numbers(const std::string& name, std::int64_t count, std::int64_t limit);
  View constant(const std::string& name, DType type, double value);
  /// To be written only.
  View output(const std::string& name, std::int64_t count) { return output(name, type_, count); }
  View output(const std::string& name, DType type, std::int64_t count);
  /// To be written, or added to: then full of numbers.
  View result(const std::string& name, DType type, std::int64_t count, bool accumulate) {
    return accumulate ? normal(name, type, count) : output(name, type, count);
  }

  /// Runs before, on the oracle.
  CaseBuilder& prepare(const Action& action);
  CaseBuilder& at(const Layout& layout, int rank);
  CaseBuilder& attention(AttentionKind kind);
  CaseBuilder& large();
  OperationCase take(const Action& action, const std::string& name);

 private:
  View add(const std::string& name, DType type, std::int64_t count, const Filling& filling);
  DType type_;
  OperationCase case_;
};

using Cases = std::vector<OperationCase>;
void add_elementwise_cases(Cases& cases, DType type);
void add_embedding_cases(Cases& cases, DType type);
void add_norm_cases(Cases& cases, DType type);
void add_product_cases(Cases& cases, DType type, bool tf32);
void add_attention_cases(Cases& cases, DType type, bool tf32);
void add_loss_cases(Cases& cases, DType type);
void add_optimizer_cases(Cases& cases, DType weights);

}  // namespace harness
