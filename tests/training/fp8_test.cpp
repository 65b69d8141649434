// Training in fp8 and mxfp8 against the bounds of docs/method.md ("How far fp8 may be from bf16").
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/settings.h"
#include "trained.h"

namespace harness::fp8_training {
namespace {

using config::Precision;
using config::Settings;

const config::Model gpt{"tiny", 2, 64, 4, 128, 32};
// With two tensor ranks, the shards of ffn are whole blocks of 32 elements.
config::Model llama() {
  config::Model m = test::tiny_llama(2, 32);
  m.ffn = 128;
  return m;
}

Settings settings_in(Precision precision) {
  Settings s;
  s.precision = precision;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  return s;
}

// Derivation of the bounds. Rounding to nearest with m bits of mantissa has a relative error of at most u = 2^-(m+1),
// and, for log-uniform mantissas, a root mean square error of r = 0.212 × 2^-m: 2.7 % for e4m3, 5.3 % for e5m2. Below
// the smallest normal number the error is absolute, at most 2^-10 of the scale (e5m2: 2^-17), where the scale is less
// than 1/224 of the largest element (1/28672): so u becomes u |x| + 2^-17 max |x|. The errors of the factors a and b of
// a product add up: r = sqrt(r_a² + r_b²), 0.0375 for e4m3 × e4m3 and 0.0594 for e5m2 × e4m3. For terms of random signs
// the product's error is that share of its norm; for terms of one sign it averages out.
//
// A layer has 4 forward products, and a gradient that passes it meets 4 more. If each error reached a gradient
// undamped, gradients of L layers would be off by sqrt(4 L 0.0375² + 4 L 0.0594²) = 0.14 sqrt(L) of their norm; since
// the residual stream is not rounded, it is less. In mxfp8 all is e4m3: sqrt(8 L 0.0375²) = 0.106 sqrt(L). Logits are
// off by sqrt(4 L 0.0375²) = 0.075 sqrt(L) of their deviation, and a loss moves by at most twice that. Against fp32,
// mxfp8 also has the error of numbers stored in bf16: some 12 a layer forward and 12 backward, each off by
// 0.212 × 2^-7, together 0.0081 sqrt(L); rounded up, 0.11 sqrt(L) for gradients and 0.16 sqrt(L) for a loss.

// Bounds on the distance of fp8 and mxfp8 from bf16, and of mxfp8 from fp32.
double gradient_bound(Precision precision, const config::Model& model) {
  return (precision == Precision::mxfp8 ? 0.11 : 0.14) * std::sqrt(static_cast<double>(model.layers));
}
// In nats: for logits with an initial deviation of 0.02 sqrt(hidden), plus a share of the change in loss by training.
double loss_bound(Precision precision, const config::Model& model, double first_loss, double loss) {
  const double logits = 0.02 * std::sqrt(static_cast<double>(model.hidden));
  return (precision == Precision::mxfp8 ? 0.16 : 0.15) * std::sqrt(static_cast<double>(model.layers)) * logits +
         gradient_bound(precision, model) * std::abs(first_loss - loss);
}

void expect_within_bounds(Precision precision, const config::Model& model, const test::Trained& ours,
                          const test::Trained& theirs, const std::string& what) {
  ASSERT_EQ(ours.losses.size(), theirs.losses.size()) << what;
  for (std::size_t i = 0; i < theirs.losses.size(); ++i) {
    const double bound = loss_bound(precision, model, theirs.losses.front(), theirs.losses[i]);
    EXPECT_NEAR(ours.losses[i], theirs.losses[i], bound) << what << ", step " << i;
  }
  test::expect_equal(ours.gradients, theirs.gradients, gradient_bound(precision, model), what);
}

class Fp8 : public ::testing::TestWithParam<Precision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, Fp8, ::testing::Values(Precision::fp8, Precision::mxfp8),
                         [](const auto& of) { return config::name_of(of.param); });

TEST_P(Fp8, TrainsAsBf16WithinItsBounds) {
  const int steps = test::emulated ? 3 : 20;
  for (const config::Model& model : {gpt, llama()}) {
    const auto in = [&](Precision p) { return test::train(model, settings_in(p), {}, steps); };
    const test::Trained bf16 = in(Precision::bf16), fp8 = in(GetParam());
    expect_within_bounds(GetParam(), model, fp8, bf16, model.name);
    if (GetParam() == Precision::mxfp8 && !test::emulated)
      expect_within_bounds(GetParam(), model, fp8, in(Precision::fp32), model.name + ", beside fp32");
    // Shows that products really are in 8 bits: rounding moves each factor by some percent.
    EXPECT_GT(test::distance(fp8.gradients.at("layers.0.fc2.weight"), bf16.gradients.at("layers.0.fc2.weight")), 0.02)
        << model.name;
  }
}

struct Way {
  const char* settings;
  int tp, pp, dp;
};

// Each rank scales its own shards, sums have another order, and recomputed layers are quantised again: all of it only
// rounds the same numbers differently.
TEST_P(Fp8, TrainsOnSeveralRanksAsOnOne) {
  const std::vector<Way> ways{{"sequence_parallel=true", 2, 1, 1},
                              {"sequence_parallel=true recompute=full", 2, 1, 1},
                              {"", 1, 2, 1},
                              {"sharding=optimizer overlap_grad_reduce=true overlap_param_gather=true", 1, 1, 2},
                              {"sharding=parameters recompute=full", 1, 1, 2},
                              {"recompute=full", 1, 1, 1},
                              {"sequence_parallel=true", 2, 2, 2}};
  for (const config::Model& model : {gpt, llama()}) {
    if (test::emulated && model.name == gpt.name) continue;
    const test::Trained one = test::train(model, settings_in(GetParam()), {});
    for (const Way& way : ways) {
      if (test::emulated && way.tp * way.pp * way.dp > 2) continue;
      if (test::sanitized && (&way - ways.data()) % 2 == 0) continue;  // all ways run at -O2
      Settings s = settings_in(GetParam());
      test::set(s, way.settings);
      const program::Layout layout = test::layout_of(way.tp, way.pp, way.dp);
      const test::Trained ours = test::train(model, s, layout);
      const std::string what = fmt::format("{}, {}, {}", model.name, program::text_of(layout), way.settings);
      expect_within_bounds(GetParam(), model, ours, one, what);
      // One rank does the same arithmetic in another order of operations: losses must be bitwise equal.
      if (layout.ranks() == 1) {
        EXPECT_EQ(ours.losses, one.losses) << what;
      }
    }
  }
}

TEST_P(Fp8, SaysWhereItIsEmulated) {
  test::LocalJob job(gpt, settings_in(GetParam()), {});
  bool said = false;
  for (const std::string& warning : job.warnings(0))
    said = said || warning.starts_with(fmt::format("{} products are emulated on a CPU", config::name_of(GetParam())));
  EXPECT_EQ(said, !test::emulated);
}

}  // namespace
}  // namespace harness::fp8_training
