// The step of `precision: fp8`: which products are in 8-bit floats, what is quantised how often, and which sizes are
// refused before anything is built.
#include <filesystem>

#include "config/experiment.h"
#include "gpt_jobs.h"
#include "support/paths.h"

namespace harness::workloads {
namespace {

using config::Recompute;
using config::Sharding;
using program::Axis;
using ::testing::HasSubstr;

const config::Model for_fp8{"m", 4, 64, 4, 256, 32};
config::Model llama_for_fp8() {
  config::Model m = small_llama();
  m.heads = 4;
  m.kv_heads = 2;
  return m;
}

Job in_fp8(Job j) {
  j.settings.precision = config::Precision::fp8;
  return j;
}

// Products of the layers are in 8-bit floats and nothing else is: not the head's, nor what attention reads.
void expect_layers_in_fp8(const program::Program& p) {
  for (const program::Operation& op : p.step) {
    program::visit_accesses(op.action, [&](program::Access, const program::View& view) {
      if (!program::is_fp8(p.buffer_of(view).type)) return;
      EXPECT_TRUE(std::holds_alternative<program::Matmul>(op.action) ||
                  std::holds_alternative<program::Quantise>(op.action))
          << program::title(op);
    });
    const auto* m = std::get_if<program::Matmul>(&op.action);
    if (m == nullptr) continue;
    const bool of_layer = op.label.layer >= 0;
    EXPECT_EQ(m->a_scale.present() && m->b_scale.present(), of_layer) << program::title(op);
    if (!of_layer) continue;
    const bool backward = op.label.phase == program::Phase::backward && !op.label.recomputed;
    EXPECT_EQ(p.buffer_of(m->a).type, backward ? program::DType::e5m2 : program::DType::e4m3) << program::title(op);
    EXPECT_EQ(p.buffer_of(m->b).type, program::DType::e4m3) << program::title(op);
  }
}

using Levers = std::vector<Lever>;
const Levers& levers_beside_fp8() {
  static const Levers all{{"none", [](Job&) {}},
                          {"sequence_parallel", [](Job& j) { j.settings.sequence_parallel = true; }},
                          {"recompute full", [](Job& j) { j.settings.recompute = Recompute::full; }},
                          {"recompute two layers",
                           [](Job& j) {
                             j.settings.recompute = Recompute::full;
                             j.settings.recompute_layers = 2;
                           }},
                          {"recompute selective", [](Job& j) { j.settings.recompute = Recompute::selective; }},
                          {"sharding optimizer", [](Job& j) { j.settings.sharding = Sharding::optimizer; }},
                          {"sharding parameters", [](Job& j) { j.settings.sharding = Sharding::parameters; }},
                          {"overlap_optimizer", [](Job& j) { j.settings.overlap_optimizer = true; }}};
  return all;
}

TEST(Fp8Step, VerifiesInPairsOfLeversOnEveryLayout) {
  for (const config::Model& model : {for_fp8, llama_for_fp8()}) {
    for (const auto& [tp, pp, dp] : {std::tuple{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 2}, {2, 1, 2}}) {
      for (const Lever& a : levers_beside_fp8()) {
        for (const Lever& b : levers_beside_fp8()) {
          Job j = in_fp8(job(model, tp, pp, dp, 3, 2));
          a.set(j);
          b.set(j);
          if (!refusal(j).empty()) continue;
          const program::ProgramSet set = build(j);
          ASSERT_EQ(texts(program::verify(set)), "") << a.name << " and " << b.name << " on " << tp << pp << dp;
          for (const program::Program& role : set.roles) expect_layers_in_fp8(role);
        }
      }
    }
  }
}

int quantised(const program::Program& p, std::string_view what) {
  return static_cast<int>(std::ranges::count_if(p.step, [&](const program::Operation& op) {
    return std::holds_alternative<program::Quantise>(op.action) && op.label.what == what;
  }));
}

// 4 layers of 4 products, 3 micro-batches.
TEST(Fp8Step, QuantisesEachTensorOnce) {
  Job j = in_fp8(job(for_fp8, 1, 1, 2, 3, 2));
  program::Program p = build(j).roles.front();
  EXPECT_EQ(quantised(p, "weight"), 16);  // the first micro-batch for all
  EXPECT_EQ(quantised(p, "input"), 16 * 3);
  EXPECT_EQ(quantised(p, "output gradient"), 16 * 3);
  // A layer that is run again quantises its inputs again, and gathered weights are quantised for each pass.
  j.settings.recompute = Recompute::full;
  p = build(j).roles.front();
  EXPECT_EQ(quantised(p, "weight"), 16);
  EXPECT_EQ(quantised(p, "input"), 2 * 16 * 3);
  j.settings.recompute = Recompute::none;
  j.settings.sharding = Sharding::parameters;
  EXPECT_GT(quantised(build(j).roles.front(), "weight"), 16 * 3);
  // With sequence parallelism two of a layer's four inputs are gathered again for the backward pass.
  j = in_fp8(job(for_fp8, 2, 1, 1, 3, 2));
  j.settings.sequence_parallel = true;
  EXPECT_EQ(quantised(build(j).roles.front(), "input"), (16 + 8) * 3);
}

// Without biases no activation is kept in bf16 for the sake of a weight gradient.
TEST(Fp8Step, TheLayersBiasGradientsAreMadeWhileQuantising) {
  const program::Program p = build(in_fp8(job(for_fp8, 1, 1, 1, 2, 2))).roles.front();
  int with_bias = 0;
  for (const program::Operation& op : p.step) {
    if (const auto* q = std::get_if<program::Quantise>(&op.action)) with_bias += q->bias_gradient.present() ? 1 : 0;
  }
  EXPECT_EQ(with_bias, 4 * 2 * 2);  // qkv and fc1
}

TEST(Fp8Step, OtherPrecisionsAreLeftAlone) {
  Job j = small_job(1, 1);
  for (const config::Precision precision :
       {config::Precision::bf16, config::Precision::mxfp8, config::Precision::nvfp4}) {
    j.settings.precision = precision;
    const program::ProgramSet set = build(j);
    for (const program::Operation& op : set.roles.front().step)
      EXPECT_FALSE(std::holds_alternative<program::Quantise>(op.action)) << config::name_of(precision);
  }
}

TEST(Fp8Sizes, AreRefusedInALineThatNamesTheSize) {
  const auto why = [](int tp, std::int64_t micro_batch, void (*change)(config::Model&)) {
    Job j = in_fp8(job(for_fp8, tp, 1, 1, 1, micro_batch));
    change(j.model);
    return refusal(j);
  };
  constexpr auto as_it_is = [](config::Model&) {};
  EXPECT_EQ(why(1, 1, as_it_is), "");
  EXPECT_EQ(why(4, 1, as_it_is), "");
  EXPECT_EQ(why(1, 1, [](config::Model& m) { m.hidden = 72; }),
            "precision fp8 multiplies matrices whose sizes are multiples of 16 only, and hidden is 72");
  EXPECT_THAT(why(4, 1, [](config::Model& m) { m.hidden = 96; }), HasSubstr("hidden / tensor_parallel 4 is 24"));
  EXPECT_THAT(why(2, 1, [](config::Model& m) { m.ffn = 144; }), HasSubstr("ffn / tensor_parallel 2 is 72"));
  EXPECT_THAT(why(1, 1, [](config::Model& m) { m.sequence = 24; }), HasSubstr("micro_batch_size * sequence is 24"));
  EXPECT_EQ(why(1, 2, [](config::Model& m) { m.sequence = 24; }), "");
  EXPECT_THAT(why(2, 1,
                  [](config::Model& m) {
                    m.heads = 8;
                    m.kv_heads = 2;
                  }),
              "");
}

// The demands of cuBLASLt, held against each product of a step (program::Matmul says it), without a device: what is not
// refused fits, and every configuration of the repository does.
TEST(Fp8Sizes, WhatIsNotRefusedFitsCublasLt) {
  int possible = 0, refused = 0;
  for (const std::int64_t hidden : {32, 48, 64, 72, 96}) {
    for (const std::int64_t ffn : {0, 40, 64, 96}) {
      for (const std::int64_t sequence : {8, 16, 24}) {
        for (const std::int64_t micro_batch : {1, 2}) {
          for (const int tp : {1, 2, 4}) {
            for (const bool sequence_parallel : {false, true}) {
              Job j = in_fp8(job({"m", 1, hidden, 4, 64, sequence}, tp, 1, 1, 1, micro_batch));
              j.model.ffn = ffn;
              j.settings.sequence_parallel = sequence_parallel;
              const std::string why = refusal(j);
              const std::string shapes = why.empty() || why.find("fp8") != std::string::npos
                                             ? texts(program::verify(build(j)))
                                             : std::string("impossible");
              EXPECT_EQ(why.empty(), shapes.empty()) << why << shapes;
              ++(why.empty() ? possible : refused);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(possible, 50);
  EXPECT_GT(refused, 50);
}

TEST(Fp8Sizes, EveryConfigurationOfTheRepositoryFits) {
  const std::filesystem::path configs = std::filesystem::path(test::source_dir()) / "configs";
  int layouts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    if (entry.path().extension() != ".yaml") continue;
    const config::Experiment e = config::load_experiment(entry.path().string());
    if (e.baseline.workload != config::training_workload) continue;
    for (const int tp : {1, 2, 4, 8}) {
      for (const bool sequence_parallel : {false, true}) {
        for (const std::int64_t micro_batch : {1, 2, 4}) {
          Job j = in_fp8(job(e.model.resolved(), tp, 1, 1, 1, micro_batch));
          j.settings.sequence_parallel = sequence_parallel;
          if (!gpt_workload().why_impossible(j.model, j.settings).empty()) continue;  // in any precision
          const std::string why = refusal(j);
          // The smallest models, of 2 cores, have fewer columns than 8 tensor ranks could share.
          if (!why.empty()) {
            EXPECT_GT(tp, 2) << entry.path() << ": " << why;
          }
          layouts += why.empty() ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(layouts, 200);
}

}  // namespace
}  // namespace harness::workloads
