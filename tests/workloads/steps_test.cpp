// Every kind of training step: levers alone and in pairs, on layouts that cover every axis. Each step verifies, has the
// FLOP, messages and memory of closed formulas, and needs every one of its waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "closed_formulas.h"
#include "config/experiment.h"
#include "config/registry.h"
#include "gpt_jobs.h"
#include "program/program.h"
#include "support/settings.h"
#include "support/soak.h"

namespace harness::workloads {
namespace {

using config::PipelineSchedule;
using config::Recompute;
using config::Sharding;
using program::Axis;
using ::testing::HasSubstr;

// A lever of a step: settings, and what else it changes.
struct Lever {
  const char* settings;
  void (*also)(Job& j) = [](Job&) {};
};

const std::vector<Lever> levers{
    {""},
    {"precision=bf16"},
    {"precision=fp8"},
    {"pipeline_schedule=gpipe"},
    {"pipeline_schedule=interleaved"},
    {"pipeline_schedule=interleaved virtual_pipeline=3"},
    {"recompute=full"},
    {"recompute=full recompute_layers=1"},
    {"recompute=selective attention=unfused"},
    {"attention=unfused"},
    {"sequence_parallel=true"},
    {"overlap_grad_reduce=false"},
    {"overlap_optimizer=true"},
    {"bucket_size=1GiB"},
    {"bucket_size=8KiB"},
    {"grad_reduce_precision=bf16"},
    {"grad_compression=topk grad_compression_ratio=0.03"},
    {"sharding=optimizer"},
    {"sharding=optimizer overlap_param_gather=true"},
    {"sharding=gradients"},
    {"sharding=parameters"},
    {"sharding=parameters prefetch_layers=0"},
    {"sharding_group=node",
     [](Job& j) {
       if (j.settings.sharding == Sharding::none) j.settings.sharding = Sharding::optimizer;
     }},
    {"", [](Job& j) { j.model.tied_embeddings = false; }},
    {"",
     [](Job& j) {
       const std::int64_t layers = j.model.layers;
       j.model = small_llama();
       j.model.layers = layers;
     }},
};

const config::Model seven_layers{"m", 7, 64, 8, 256, 16};  // two or three stages differ in length

// Two replicas share a node.
Job on(const std::array<int, 4>& layout) {
  const auto [tp, pp, dp, micro_batches] = layout;
  Job j = job(seven_layers, tp, pp, dp, micro_batches);
  j.settings.bucket_size_bytes = 32 << 10;
  j.layout.replicas_of_node = dp % 2 == 0 ? 2 : 1;
  return j;
}

// The registry, not the workload, refuses an interleaved schedule on one stage, and compressed gradients together with
// another lever of gradients.
bool is_possible(const Job& j) {
  const bool stages = j.layout[Axis::pipeline] > 1;
  if (!config::find_variable("grad_compression")->conflict(j.settings).empty()) return false;
  return refusal(j).empty() && (stages || j.settings.pipeline_schedule != PipelineSchedule::interleaved);
}

// Calls visit(job, text) for every pair of levers on these layouts, or for every single lever.
template <class Visit>
void each_step(const std::vector<std::array<int, 4>>& layouts, bool pairs, const Visit& visit) {
  for (const auto& layout : layouts) {
    for (std::size_t a = 0; a < levers.size(); ++a) {
      for (std::size_t b = a; b < (pairs ? levers.size() : a + 1); ++b) {
        Job j = on(layout);
        for (const Lever& lever : {levers[a], levers[b]}) {
          test::set(j.settings, lever.settings);
          lever.also(j);
        }
        const std::string text =
            fmt::format("{}, {}, {}, '{}' and '{}'", program::text_of(j.layout), config::in_words(j.model),
                        j.settings.global_batch_size, levers[a].settings, levers[b].settings);
        if (!is_possible(j) || (a != b && a > 0 && test::sanitized && !test::drawn(text, 1))) continue;
        visit(j, text);
      }
    }
  }
}

// Only the layers' products are in 8-bit floats, not the head's product and not attention.
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

const std::vector<std::array<int, 4>> layouts{{1, 1, 1, 1}, {1, 1, 4, 5}, {2, 1, 2, 2}, {1, 3, 2, 9}, {2, 2, 2, 4}};

TEST(Steps, VerifyAndComputeAndSendWhatClosedFormulasSay) {
  int steps = 0;
  std::set<std::int64_t> buckets;
  each_step(layouts, true, [&](const Job& j, const std::string& text) {
    SCOPED_TRACE(text);
    const program::ProgramSet set = build(j);
    EXPECT_EQ(texts(program::verify(set)), "");
    EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
    const program::Flop flop = program::total_flop(set);
    EXPECT_NEAR(flop.model / closed::flop(j), 1, 1e-12);
    EXPECT_NEAR(flop.noncausal / closed::flop(j, 2), 1, 1e-12);
    const double again = closed::recomputed_flop(j);
    EXPECT_NEAR(program::total_flop(set, program::once, program::is_recomputed).model, again, 1e-12 * again);
    // With gpipe, another order of passes decides which gathered weights are still present.
    const bool no_formula =
        j.settings.sharding == Sharding::parameters && j.settings.pipeline_schedule == PipelineSchedule::gpipe;
    for (int stage = 0; stage < j.layout[Axis::pipeline] && !no_formula; ++stage) {
      const program::Program& role = set.roles[static_cast<std::size_t>(stage)];
      if (j.settings.precision == config::Precision::fp8) expect_layers_in_fp8(role);
      closed::Traffic counted;
      for (const auto& [key, sent] : program::count(set, role).traffic) counted[key] = {sent.messages, sent.bytes};
      EXPECT_EQ(counted, closed::traffic(j, stage)) << "stage " << stage;
      EXPECT_EQ(bytes_of(role, {"master", "weights", "moment1", "moment2", "gradient", "residual"}),
                closed::model_bytes(j, stage));
      if (j.settings.sharding < Sharding::parameters) buckets.insert(elements_of(j, stage).buckets);
    }
    ++steps;
  });
  EXPECT_GT(steps, test::sanitized ? 100 : 700);
  EXPECT_TRUE(buckets.contains(1) && *buckets.rbegin() > 10);
}

// Published FLOP per token: 8.470 GFLOP by Megatron-LM's formula of 2025, 2.524 TFLOP by Llama's.
TEST(Steps, HaveThePublishedFlop) {
  const Job small = job({"gpt3-1.3b", 24, 2048, 16, 50304, 2048}, 1, 1, 1, 1);
  EXPECT_NEAR(program::total_flop(build(small)).model / 2048 / 1e9, 8.470, 5e-4);
  const Job large = job(*config::model_preset("llama3-405b"), 8, 16, 1, 1);
  EXPECT_NEAR(program::total_flop(build(large)).model / 8192 / 1e12, 2.5240, 5e-5);
  EXPECT_THAT(gpt_workload().flop_formula(large.model), HasSubstr("3 f"));
  EXPECT_THAT(gpt_workload().flop_formula(*config::model_preset("gpt3-1.3b")), HasSubstr("72 B s L h^2"));
}

// Elsewhere a role stands for all of its ranks.
TEST(Steps, VerifyRankByRank) {
  each_step({{2, 2, 2, 4}, {1, 1, 6, 3}, {4, 1, 2, 2}}, false, [](const Job& j, const std::string& text) {
    EXPECT_EQ(texts(program::verify(program::expand(build(j)))), "") << text;
  });
  const config::Model m{"m", 8, 64, 8, 256, 16};
  EXPECT_EQ(texts(program::verify(build(job(m, 8, 8, 8, 9)))), "");
  EXPECT_EQ(texts(program::verify(program::expand(build(job(m, 4, 4, 4, 4))))), "");
}

TEST(Steps, OfEveryModelVerify) {
  for (const config::Model& m : mixtures()) {
    for (const auto& [tp, pp, dp] : {std::array{2, 1, 1}, std::array{1, 2, 2}, std::array{2, 2, 1}}) {
      for (const bool divided : {false, true}) {
        Job j = job(m, tp, pp, dp, 4, 2);
        j.settings.sequence_parallel = divided;
        j.settings.recompute = divided ? Recompute::full : Recompute::none;
        j.settings.bucket_size_bytes = 32 << 10;
        const program::ProgramSet set = build(j);
        for (const program::FusedSet fused : {program::all_fused, program::FusedSet{0}})
          EXPECT_EQ(texts(program::verify(program::lower(set, fused))), "") << m.name;
        EXPECT_NEAR(program::total_flop(set).model / closed::flop(j), 1, 1e-12) << m.name;
      }
    }
  }
}

// Drops each wait in turn, except those of the step's last operations: these wait for the ends of all streams, some of
// which other operations have waited for already.
TEST(Steps, AreRefusedWithoutAnyOneOfTheirWaits) {
  int waits = 0;
  each_step({{1, 1, 4, 2}, {1, 2, 2, 2}}, false, [&](const Job& whole, const std::string& text) {
    Job j = whole;
    j.model.layers = j.settings.virtual_pipeline == 3 ? 6 : 4;
    const program::ProgramSet sound = build(j);
    for (std::size_t r = 0; r < sound.roles.size(); ++r) {
      const auto& step = sound.roles[r].step;
      for (std::size_t i = 0; i < step.size(); ++i) {
        if (step[i].label.phase == program::Phase::finish) continue;
        for (const program::OperationId awaited : step[i].waits) {
          const std::string what = program::title(step[i]) + " without " + program::title(step[awaited]);
          if (test::sanitized && !test::drawn(text + what, 1)) continue;
          program::ProgramSet lacking = sound;
          std::erase(lacking.roles[r].step[i].waits, awaited);
          EXPECT_THAT(texts(program::verify(lacking, 1)), HasSubstr("a wait is missing")) << text << ": " << what;
          ++waits;
        }
      }
    }
  });
  EXPECT_GT(waits, test::sanitized ? 50 : 900);
}

}  // namespace
}  // namespace harness::workloads
