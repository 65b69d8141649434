#include <algorithm>

#include "rig.h"

namespace harness::test {
namespace {

class Losses : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Losses, all_types(), type_name);

struct Exact {
  double loss = 0;
  std::vector<double> gradient;
};

Exact exact(const std::vector<double>& logits, const std::vector<double>& labels, std::size_t vocab, double loss_scale,
            double gradient_scale) {
  Exact e;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    double maximum = -1e300, sum = 0;
    for (std::size_t i = 0; i < vocab; ++i) maximum = std::max(maximum, logits[r * vocab + i]);
    for (std::size_t i = 0; i < vocab; ++i) sum += std::exp(logits[r * vocab + i] - maximum);
    const std::size_t label = labels[r];
    e.loss += loss_scale * (std::log(sum) + maximum - logits[r * vocab + label]);
    for (std::size_t i = 0; i < vocab; ++i) {
      e.gradient.push_back(gradient_scale * (std::exp(logits[r * vocab + i] - maximum) / sum - (i == label ? 1 : 0)));
    }
  }
  return e;
}

std::vector<double> some_labels(std::size_t n, std::size_t vocab) {
  std::vector<double> labels;
  for (std::size_t r = 0; r < n; ++r) labels.push_back(static_cast<double>(r * 7919 % vocab));
  return labels;
}

TEST_P(Losses, CrossEntropyWithItsGradient) {
  for (const auto& [rows, vocab] : {std::pair<std::int64_t, std::int64_t>{37, 1000}, {5, 2051}, {130, 3}}) {
    Rig rig(GetParam());
    auto values = random_values(rows * vocab, 1, 4);
    values[0] = 300;  // no overflow, no underflow to NaN
    values[1] = -300;
    const auto label_values = some_labels(rows, vocab);
    const program::View logits = rig.tensor(values), labels = rig.i32(label_values), loss = rig.f32({0.25});
    rig.run(program::CrossEntropy{logits, labels, loss, rows, vocab, 0.01, 3.0});
    const Exact want = exact(rig.rounded(logits), label_values, vocab, 0.01, 3.0);
    EXPECT_NEAR(rig.get(loss)[0], want.loss + 0.25, 1e-6 * (want.loss + 0.25));
    EXPECT_LT(error(rig.get(logits), want.gradient), rig.tolerance());
  }
}

// Two rows of four are padding. Whole, and as one shard of the vocabulary.
TEST_P(Losses, ARowWithoutALabelHasNoLossAndNoGradient) {
  constexpr std::int64_t vocab = 100;
  const std::vector<double> labels_here{3, -1, 99, -1}, both{3, 99};
  const auto values = random_values(4 * vocab, 2, 4);
  std::vector<double> with_label;
  for (const int row : {0, 2}) {
    with_label.insert(with_label.end(), values.begin() + row * vocab, values.begin() + (row + 1) * vocab);
  }
  for (const bool sharded : {false, true}) {
    Rig rig(GetParam());
    const program::View logits = rig.tensor(values), labels = rig.i32(labels_here), loss = rig.f32({0.25});
    const program::View scale = rig.f32({0.5});
    if (sharded) {
      std::vector<double> maximum, target, sum;
      const std::vector<double> x = rig.rounded(logits);
      for (std::int64_t r = 0; r < 4; ++r) {
        maximum.push_back(*std::max_element(x.begin() + r * vocab, x.begin() + (r + 1) * vocab));
        target.push_back(labels_here[r] < 0 ? 0 : x[r * vocab + labels_here[r]] - maximum[r]);
        sum.push_back(0);
        for (std::int64_t i = 0; i < vocab; ++i) sum[r] += std::exp(x[r * vocab + i] - maximum[r]);
      }
      rig.run(program::CrossEntropyGradient{logits,
                                            labels,
                                            rig.f32(maximum),
                                            rig.f32(target),
                                            rig.f32(sum),
                                            loss,
                                            4,
                                            vocab,
                                            {program::Axis::tensor, vocab},
                                            0.2,
                                            6.0,
                                            scale});
    } else {
      rig.run(program::CrossEntropy{logits, labels, loss, 4, vocab, 0.2, 6.0, scale});
    }
    Rig rounds(GetParam());
    const Exact want = exact(rounds.rounded(rounds.tensor(with_label)), both, vocab, 0.1, 3.0);
    EXPECT_NEAR(rig.get(loss)[0], want.loss + 0.25, 2e-6 * (want.loss + 0.25));
    const std::vector<double> got = rig.get(logits);
    std::vector<double> of_labels;
    for (std::int64_t i = 0; i < 4 * vocab; ++i) {
      if (labels_here[i / vocab] >= 0) {
        of_labels.push_back(got[i]);
      } else {
        EXPECT_EQ(got[i], 0) << i;
      }
    }
    EXPECT_LT(error(of_labels, want.gradient), rig.tolerance());
  }
}

TEST(CrossEntropyLabels, ALabelThatIsNoTokenMakesTheLossNaN) {
  Rig rig;
  const program::View logits = rig.f32({1, 2, 3}), labels = rig.i32({3}), loss = rig.f32({0});
  rig.run(program::CrossEntropy{logits, labels, loss, 1, 3});
  EXPECT_TRUE(std::isnan(rig.get(loss)[0]));
}

TEST_P(Losses, ThePartsOverAShardedVocabularyMakeTheWhole) {
  constexpr std::int64_t rows = 23, vocab = 150, shards = 3, local = vocab / shards;
  const auto values = random_values(rows * vocab, 1, 4);
  const auto label_values = some_labels(rows, vocab);
  program::Layout layout;
  layout[program::Axis::tensor] = shards;
  std::vector<double> all(values.size());
  std::vector<double> maximum(rows, -1e300), target(rows), sum(rows);
  const auto slice = [&](std::int64_t shard) {
    std::vector<double> out;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < local; ++i) out.push_back(values[r * vocab + shard * local + i]);
    }
    return out;
  };
  for (int s = 0; s < shards; ++s) {
    Rig rig(GetParam());
    const program::View logits = rig.tensor(slice(s)), out = rig.output_f32(rows);
    rig.run(program::CrossEntropyMaximum{logits, out, rows, local}, layout, s);
    for (std::size_t r = 0; r < rows; ++r) maximum[r] = std::max(maximum[r], rig.get(out)[r]);
    const auto rounded = rig.rounded(logits);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < local; ++i) {
        all[r * vocab + s * local + i] = rounded[r * local + i];
      }
    }
  }
  for (int s = 0; s < shards; ++s) {
    Rig rig(GetParam());
    const program::View logits = rig.tensor(slice(s)), labels = rig.i32(label_values), m = rig.f32(maximum),
                        t = rig.output_f32(rows), q = rig.output_f32(rows);
    rig.run(program::CrossEntropySums{logits, labels, m, t, q, rows, local, {program::Axis::tensor, local}}, layout, s);
    for (std::size_t r = 0; r < rows; ++r) {
      target[r] += rig.get(t)[r];
      sum[r] += rig.get(q)[r];
    }
  }
  const Exact want = exact(all, label_values, vocab, 0.5, 2.0);
  for (int s = 0; s < shards; ++s) {
    Rig rig(GetParam());
    const program::View logits = rig.tensor(slice(s)), labels = rig.i32(label_values), m = rig.f32(maximum),
                        t = rig.f32(target), q = rig.f32(sum), loss = rig.f32({0});
    rig.run(
        program::CrossEntropyGradient{
            logits, labels, m, t, q, loss, rows, local, {program::Axis::tensor, local}, 0.5, 2.0},
        layout, s);
    EXPECT_NEAR(rig.get(loss)[0], want.loss, 2e-6 * want.loss);
    std::vector<double> part;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < local; ++i) part.push_back(want.gradient[r * vocab + s * local + i]);
    }
    EXPECT_LT(error(rig.get(logits), part), rig.tolerance());
  }
}

}  // namespace
}  // namespace harness::test
