#pragma once

#include <string_view>

#include "program/field.h"
#include "program/view.h"

namespace harness::program {

// Cross-entropy, whole and over shards of the vocabulary; the conventions stand in program/operation.h.

/// Softmax cross-entropy with its gradient in place: loss[0] += loss_scale * sum over rows of -log p(label);
/// logits = gradient_scale * (softmax - onehot). logits [rows, vocab]; labels [rows] i32; loss [1] f32.
template <class T>
struct CrossEntropyOf {
  T logits = {}, labels = {}, loss = {};
  std::int64_t rows = 0, vocab = 0;
  double loss_scale = 1, gradient_scale = 1;
  static constexpr std::string_view name = "cross_entropy";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.labels), updates(op.logits, op.loss),
                          parameters(op.rows, op.vocab, op.loss_scale, op.gradient_scale));
  }
};
using CrossEntropy = CrossEntropyOf<View>;

/// The three local parts of the same over a vocabulary shard, with all-reduces of [rows] f32 between them:
/// maximum[r] = max of the row (then all-reduce max);
template <class T>
struct CrossEntropyMaximumOf {
  T logits = {}, maximum = {};
  std::int64_t rows = 0, vocab = 0;
  static constexpr std::string_view name = "cross_entropy_maximum";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.logits), writes(op.maximum), parameters(op.rows, op.vocab));
  }
};
using CrossEntropyMaximum = CrossEntropyMaximumOf<View>;

/// target[r] = logit of the label minus maximum (0 if another rank holds it), sum[r] = sum of exp(logit - maximum)
/// (then all-reduce sum of each);
template <class T>
struct CrossEntropySumsOf {
  T logits = {}, labels = {}, maximum = {}, target = {}, sum = {};
  std::int64_t rows = 0, vocab = 0;
  Shard shard = {};
  static constexpr std::string_view name = "cross_entropy_sums";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.logits, op.labels, op.maximum), writes(op.target, op.sum),
                          parameters(op.rows, op.vocab, op.shard));
  }
};
using CrossEntropySums = CrossEntropySumsOf<View>;

/// loss[0] += loss_scale * sum over rows of (log sum - target); logits = gradient_scale * (softmax - onehot).
template <class T>
struct CrossEntropyGradientOf {
  T logits = {}, labels = {}, maximum = {}, target = {}, sum = {}, loss = {};
  std::int64_t rows = 0, vocab = 0;
  Shard shard = {};
  double loss_scale = 1, gradient_scale = 1;
  static constexpr std::string_view name = "cross_entropy_gradient";
  static constexpr auto fields(auto& op) {
    return std::tuple_cat(reads(op.labels, op.maximum, op.target, op.sum), updates(op.logits, op.loss),
                          parameters(op.rows, op.vocab, op.shard, op.loss_scale, op.gradient_scale));
  }
};
using CrossEntropyGradient = CrossEntropyGradientOf<View>;

}  // namespace harness::program
