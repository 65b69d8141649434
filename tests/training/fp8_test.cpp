// Training in fp8 and mxfp8, held against the bounds of docs/method.md ("How far fp8 may be from bf16").
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "trained.h"

namespace harness::fp8_training {
namespace {

using config::Precision;
using config::Settings;

const config::Model gpt{"tiny", 2, 64, 4, 128, 32};
// Two ranks' parts of it are whole blocks of 32 elements.
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

// How the bounds follow. Rounding to nearest with m bits of mantissa is off by at most u = 2^-(m+1) of the number, and
// in the root mean square, over mantissas that are spread evenly in the logarithm, by r = 0.212 × 2^-m: of e4m3 by 2.7
// %, of e5m2 by 5.3 %. Below the smallest normal number the error is absolute, at most 2^-10 of the scale (e5m2:
// 2^-17), which is less than 1/224 of the largest element (1/28672): so u becomes u |x| + 2^-17 max |x|. A product of
// factors a and b adds both: r = sqrt(r_a² + r_b²), 0.0375 of e4m3 × e4m3 and 0.0594 of e5m2 × e4m3. Its terms have
// random signs, and its error is that share of its norm; terms of one sign average out.
//
// A layer has 4 products forward, and a gradient that passes it meets 4 more. If each error reached a gradient
// undamped, gradients of L layers would be off by sqrt(4 L 0.0375² + 4 L 0.0594²) = 0.14 sqrt(L) of their norm; the
// residual stream is not rounded, so it is less. In mxfp8 all is e4m3: sqrt(8 L 0.0375²) = 0.106 sqrt(L). Logits are
// off by sqrt(4 L 0.0375²) = 0.075 sqrt(L) of their deviation, and a loss moves by at most twice that. From fp32, mxfp8
// is also off by what is stored in bf16: some 12 numbers a layer forward and 12 backward, each by 0.212 × 2^-7,
// together 0.0081 sqrt(L); rounded up 0.11 sqrt(L) for gradients, and 0.16 sqrt(L) for a loss.

// The bounds on the distance from bf16, and of mxfp8 from fp32.
double gradient_bound(Precision precision, const config::Model& model) {
  return (precision == Precision::mxfp8 ? 0.11 : 0.14) * std::sqrt(static_cast<double>(model.layers));
}
// In nats: of logits with deviation 0.02 sqrt(hidden) at first, and of what training then takes off.
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
    // It is not bf16 by another name: a product rounds each factor by some percent.
    EXPECT_GT(test::distance(fp8.gradients.at("layers.0.fc2.weight"), bf16.gradients.at("layers.0.fc2.weight")), 0.02)
        << model.name;
  }
}

struct Way {
  const char* name;
  int tp, pp, dp;
  std::function<void(Settings&)> set;
};

// Each rank scales its own shards, sums are added up in another order, and layers are quantised again: no more than
// other roundings of the same numbers.
TEST_P(Fp8, TrainsOnSeveralRanksAsOnOne) {
  const std::vector<Way> ways{{"sequence parallel", 2, 1, 1, [](Settings& s) { s.sequence_parallel = true; }},
                              {"sequence parallel, recompute full", 2, 1, 1,
                               [](Settings& s) {
                                 s.sequence_parallel = true;
                                 s.recompute = config::Recompute::full;
                               }},
                              {"pipeline", 1, 2, 1, [](Settings&) {}},
                              {"sharding optimizer, gathered ahead", 1, 1, 2,
                               [](Settings& s) {
                                 s.sharding = config::Sharding::optimizer;
                                 s.overlap_grad_reduce = s.overlap_param_gather = true;
                               }},
                              {"sharding parameters, recompute full", 1, 1, 2,
                               [](Settings& s) {
                                 s.sharding = config::Sharding::parameters;
                                 s.recompute = config::Recompute::full;
                               }},
                              {"recompute full", 1, 1, 1, [](Settings& s) { s.recompute = config::Recompute::full; }},
                              {"all axes", 2, 2, 2, [](Settings& s) { s.sequence_parallel = true; }}};
  for (const config::Model& model : {gpt, llama()}) {
    if (test::emulated && model.name == gpt.name) continue;
    const test::Trained one = test::train(model, settings_in(GetParam()), {});
    for (const Way& way : ways) {
      if (test::emulated && way.tp * way.pp * way.dp > 2) continue;
      if (test::sanitized && (&way - ways.data()) % 2 == 0) continue;  // all of them run at -O2
      Settings s = settings_in(GetParam());
      way.set(s);
      const test::Trained ours = test::train(model, s, test::layout_of(way.tp, way.pp, way.dp));
      expect_within_bounds(GetParam(), model, ours, one, model.name + ", " + way.name);
      // One rank does the same arithmetic in another order of operations: not a bit may differ.
      if (way.tp * way.pp * way.dp == 1) {
        EXPECT_EQ(ours.losses, one.losses) << model.name << ", " << way.name;
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
