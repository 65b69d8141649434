#include <fmt/format.h>

#include <array>
#include <string>

#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

struct LogitsSize {
  std::int64_t rows, vocab;  // vocab: of all shards together
  int shards = 1, rank = 0;
  bool large = false;
};
constexpr LogitsSize logits_sizes[] = {{1, 8},           {7, 33},          {64, 1000},
                                       {4, 50304},       {1500, 16},       {2, 8191},
                                       {24, 1024, 2, 0}, {24, 1024, 2, 1}, {2048, 50304, 1, 0, true}};

// Plain, scaled as for fp16, or with a common factor and padding rows.
enum class Scaling : std::uint8_t { plain, scaled, padded };

// The parts of a sharded cross-entropy and the whole differ in which of these members they have.
template <class Operation>
Operation loss_operation(CaseBuilder& b, const LogitsSize& s, Scaling scaling) {
  using program::DType;
  Operation op;
  op.rows = s.rows;
  op.vocab = s.vocab / s.shards;
  op.logits = b.normal("logits", op.rows * op.vocab, 2);
  if constexpr (requires { op.labels; })
    op.labels = b.whole_numbers("labels", s.rows, s.vocab, scaling == Scaling::padded ? -s.vocab / 3 : 0);
  if constexpr (requires { op.maximum; }) op.maximum = b.output("maximum", DType::f32, s.rows);
  if constexpr (requires { op.target; }) {
    op.target = b.output("target", DType::f32, s.rows);
    op.sum = b.output("sum", DType::f32, s.rows);
    op.shard = {program::Axis::tensor, op.vocab};
  }
  if constexpr (requires { op.loss; }) {
    op.loss = b.normal("loss", DType::f32, 1);
    op.loss_scale = 1 / static_cast<double>(s.rows);
    op.gradient_scale = 0.5;
    if (scaling == Scaling::scaled) op.gradient_factor = b.constant("gradient_factor", DType::f32, 64);
    if (scaling == Scaling::padded) op.scale = b.constant("scale", DType::f32, 0.25);
  }
  return op;
}

}  // namespace

void add_loss_cases(Cases& cases, program::DType type) {
  for (const LogitsSize& s : logits_sizes) {
    const CaseBuilder shard = CaseBuilder(type, s.large).shard(s.rank, s.shards);
    const std::string name = fmt::format("{} x {}{}", s.rows, s.vocab / s.shards,
                                         s.shards == 1 ? "" : fmt::format(", shard {} of {}", s.rank, s.shards));
    for (const Scaling scaling : {Scaling::plain, Scaling::scaled, Scaling::padded}) {
      if (s.large && scaling != Scaling::plain) continue;
      constexpr std::array words{"", ", scaled", ", with padding"};
      const std::string scaled_name = name + words[static_cast<std::size_t>(scaling)];
      CaseBuilder whole = shard, gradient = shard;
      const auto loss = loss_operation<program::CrossEntropy>(whole, s, scaling);
      if (s.shards == 1) cases.push_back(whole.take(loss, scaled_name));
      const auto op = loss_operation<program::CrossEntropyGradient>(gradient, s, scaling);
      gradient.prepare(program::CrossEntropyMaximum{op.logits, op.maximum, op.rows, op.vocab});
      gradient.prepare(
          program::CrossEntropySums{op.logits, op.labels, op.maximum, op.target, op.sum, op.rows, op.vocab, op.shard});
      cases.push_back(gradient.take(op, scaled_name));
    }
    CaseBuilder maximum = shard, sums = shard;
    cases.push_back(maximum.take(loss_operation<program::CrossEntropyMaximum>(maximum, s, Scaling::plain), name));
    const auto op = loss_operation<program::CrossEntropySums>(sums, s, Scaling::plain);
    sums.prepare(program::CrossEntropyMaximum{op.logits, op.maximum, op.rows, op.vocab});
    cases.push_back(sums.take(op, name));
  }
}

}  // namespace harness::selftest
