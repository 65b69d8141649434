#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "program/program.h"
#include "small_experiment.h"
#include "support/drawn_steps.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/soak.h"
#include "workloads/gpt/gpt.h"

namespace harness::plan {
namespace {

const config::Model model_1b3{"gpt3-1.3b", 24, 2048, 16, 50304, 2048};

PlannedCase small_case(int ranks, const config::Settings& settings) {
  PlannedCase c;
  c.settings = settings;
  c.layout = divide_ranks(test::small_experiment().model, settings, ranks).layout;
  return c;
}

// A case on 4 ranks, of which each `context` share a sequence.
PlannedCase sharing_a_sequence(int context) {
  config::Settings s;
  s.layout = {{program::Axis::context, context}};
  s.global_batch_size = 4;
  return small_case(4, s);
}

// Context-parallel ranks compute each other's part of the attention, and reduce gradients as replicas do.
TEST(Survey, RanksThatShareASequenceDoTheSameWork) {
  const config::Model model = test::small_experiment().model;
  EXPECT_EQ(sharing_a_sequence(2).layout[program::Axis::data], 4);
  const Survey alone = Surveyor(model, config::BackendKind::sim).survey(sharing_a_sequence(1)),
               pairs = Surveyor(model, config::BackendKind::sim).survey(sharing_a_sequence(2));
  EXPECT_NEAR(pairs.flop.model, alone.flop.model, 1e-9 * alone.flop.model);
  EXPECT_NEAR(pairs.flop.noncausal, alone.flop.noncausal, 1e-9 * alone.flop.noncausal);
  EXPECT_EQ(pairs.tokens_per_step, alone.tokens_per_step);
  EXPECT_EQ(pairs.counts[0].traffic.at({"data", "all_reduce"}).bytes,
            alone.counts[0].traffic.at({"data", "all_reduce"}).bytes);
}

// An operation that each rank repeats is as much work whatever layout the model's step has.
TEST(Survey, ARepeatedOperationSharesNoSequence) {
  const auto flop = [](int context) {
    config::Experiment e = test::small_experiment();
    PlannedCase c;
    c.settings = e.baseline;
    c.settings.workload = "attention";
    c.settings.layout = {{program::Axis::context, context}};
    c.layout = {{program::Axis::data, 2}};
    return Surveyor(e.model, e.backend).survey(c).flop.model;
  };
  EXPECT_EQ(flop(2), flop(1));
}

// Half of each row is padding: the model needs half of the products and a quarter of the attention.
TEST(Survey, PaddingIsNoneOfTheModelsWork) {
  const auto with = [](const char* sequences, config::Batching batching) {
    const config::Experiment e = test::small_experiment();
    config::Settings s;
    config::find_variable("sequences")->parse(s, sequences);
    s.batching = batching;
    return Surveyor(e.model, e.backend).survey(small_case(2, s));
  };
  constexpr const char* halves = "{distribution: uniform, min: 64, max: 64}";
  const Survey full = with("full", config::Batching::packed), padded = with(halves, config::Batching::padded),
               packed = with(halves, config::Batching::packed);
  const double attention = full.flop.noncausal - full.flop.model, products = full.flop.model - attention;
  EXPECT_EQ(full.goodput, 1);
  EXPECT_EQ(padded.goodput, 0.5);
  EXPECT_EQ(packed.goodput, 1);
  EXPECT_EQ(padded.tokens_per_step, full.tokens_per_step / 2);
  EXPECT_EQ(packed.tokens_per_step, full.tokens_per_step);
  EXPECT_NEAR(padded.flop.model, products / 2 + attention / 4, 1e-9 * products);
  EXPECT_NEAR(padded.flop.noncausal, products / 2 + attention / 2, 1e-9 * products);
  EXPECT_NEAR(packed.flop.model, products + attention / 2, 1e-9 * products);
  EXPECT_EQ(padded.hardware_flop, padded.flop.model);
  EXPECT_EQ(full.program_hash, with("full", config::Batching::padded).program_hash);
  EXPECT_NE(packed.program_hash, padded.program_hash);
}

TEST(Survey, WhatCasesShareIsWhatEachOfThemHas) {
  config::Experiment e = test::small_experiment();
  e.backend = config::BackendKind::cuda;
  const std::vector<std::pair<std::string, std::string>> changes{{"nccl_algo", "AllReduce:Ring"},
                                                                 {"nccl_buffsize", "8 MiB"},
                                                                 {"env", "{A: 1}"},
                                                                 {"bucket_size", "64 KiB"},
                                                                 {"overlap_optimizer", "true"},
                                                                 {"fusion", "false"},
                                                                 {"attention", "unfused"},
                                                                 {"micro_batch_size", "2"},
                                                                 {"layout", "{tensor_parallel: 2}"},
                                                                 {"ranks", "2"}};
  for (const auto& [variable, value] : changes) test::add_change(e, variable, value);
  const Plan plan = prepare(e, 4, {});
  ASSERT_EQ(plan.cases.size(), 2 + changes.size());
  for (const PlannedCase& planned : plan.cases) {
    ASSERT_TRUE(planned.is_possible()) << planned.name << ": " << planned.impossible;
    const Survey own = Surveyor(e.model, e.backend).survey(planned);
    EXPECT_EQ(planned.survey.program_hash, own.program_hash) << planned.name;
    EXPECT_EQ(planned.survey.peak_bytes, own.peak_bytes) << planned.name;
    EXPECT_EQ(planned.survey.flop.model, own.flop.model) << planned.name;
    EXPECT_EQ(planned.survey.tokens_per_step, own.tokens_per_step) << planned.name;
  }
}

void expect_equal(const Survey& folded, const Survey& whole) {
  EXPECT_EQ(folded.roles, whole.roles);
  EXPECT_EQ(folded.peak_bytes, whole.peak_bytes);
  EXPECT_EQ(folded.peak_role, whole.peak_role);
  EXPECT_NEAR(folded.flop.model, whole.flop.model, 1e-12 * whole.flop.model);
  EXPECT_NEAR(folded.flop.noncausal, whole.flop.noncausal, 1e-12 * whole.flop.noncausal);
  EXPECT_NEAR(folded.hardware_flop, whole.hardware_flop, 1e-12 * whole.hardware_flop);
  ASSERT_EQ(folded.counts.size(), whole.counts.size());
  for (std::size_t role = 0; role < whole.counts.size(); ++role) {
    const program::Count &f = folded.counts[role], &w = whole.counts[role];
    EXPECT_EQ(f.operations, w.operations);
    EXPECT_EQ(f.flop_kinds, w.flop_kinds);
    ASSERT_EQ(f.traffic.size(), w.traffic.size());
    for (const auto& [kind, traffic] : w.traffic) {
      ASSERT_TRUE(f.traffic.contains(kind)) << kind.first << " " << kind.second;
      const program::Traffic& of_folded = f.traffic.at(kind);
      EXPECT_EQ(of_folded.messages, traffic.messages) << kind.first << " " << kind.second;
      EXPECT_EQ(of_folded.bytes, traffic.bytes) << kind.first << " " << kind.second;
      EXPECT_NEAR(of_folded.sent_bytes, traffic.sent_bytes, 1e-12 * traffic.sent_bytes);
    }
  }
}

TEST(FoldedSurvey, IsThatOfTheWholeStep) {
  test::StepDraw draw(4);
  const int drawn = test::times(200, 50, 200);
  int shortened = 0;
  for (int i = 0; i < drawn; ++i) {
    test::DrawnStep step = draw.next();
    if (i % 4 == 0) step.settings.global_batch_size *= 3;
    SCOPED_TRACE(step.text());
    program::FoldedStep folded = gpt::folded(step.model, step.settings, step.layout);
    const program::FusedSet fused = i % 2 == 0 ? program::all_fused : 0;
    folded.sample = program::lower(std::move(folded.sample), fused);
    // If a few micro-batches determine the others, no more of them are expanded.
    const program::Repetition& repetition = folded.fullest.front();
    const bool shortens = repetition.enough + repetition.every <= folded.micro_batches;
    folded.written_out = [&, written_out = folded.written_out](int role, int micro_batches) {
      EXPECT_TRUE(!shortens || micro_batches < folded.micro_batches);
      return written_out(role, micro_batches);
    };
    expect_equal(survey_of(folded, fused),
                 survey_of(program::lower(gpt::programs(step.model, step.settings, step.layout), fused)));
    shortened += shortens ? 1 : 0;
  }
  EXPECT_GE(shortened, drawn / 4);
}

// A prediction folds long steps, a measurement builds them whole. Both surveys agree.
TEST(FoldedSurvey, IsTakenOfLongStepsWhereTheBackendPredicts) {
  PlannedCase c;
  c.settings.global_batch_size = 64;
  c.settings.layout = {{program::Axis::pipeline, 2}};
  c.layout.size = {1, 1, 1, 2};
  Surveyor predicting(model_1b3, config::BackendKind::sim), measuring(model_1b3, config::BackendKind::cpu);
  const Survey folded = predicting.survey(c), whole = measuring.survey(c);
  EXPECT_TRUE(predicting.take_step().folded);
  EXPECT_FALSE(predicting.take_step().folded);
  EXPECT_TRUE(measuring.take_step().whole);
  EXPECT_NEAR(whole.flop.model / whole.tokens_per_step / 1e9, 8.470, 5e-4);
  EXPECT_NEAR(folded.flop.model, whole.flop.model, 1e-12 * whole.flop.model);
  EXPECT_EQ(folded.tokens_per_step, whole.tokens_per_step);
}

using ::testing::HasSubstr;

// GPT-3 1.3B, 16 sequences of 2048 tokens at once, bf16, on one H200.
struct OneH200 {
  explicit OneH200(const std::string& override_text = "measure.seed=1")
      : experiment(config::load_experiment(test::source_dir() + "/configs/h200.yaml",
                                           {"global_batch_size=16", override_text})),
        plan(prepare(experiment, 1, {"baseline"})) {}
  Budget budget() const {
    return plan::budget(plan.experiment.model, config::BackendKind::cuda, plan.baseline(), *plan.experiment.hardware);
  }
  config::Experiment experiment;
  Plan plan;
};

template <class Value>
std::map<std::string, double> by_kind(const Budget& budget, Value BudgetLine::*value) {
  std::map<std::string, double> sums;
  for (const BudgetLine& line : budget.lines) sums[line.kind] += line.*value;
  return sums;
}

// By hand, with T = 32768 tokens, h = 2048, V = 50304 and 24 layers; A = 2 T h bytes is one activation in bf16.
TEST(Budget, IsTheOneComputedByHand) {
  const Budget b = OneH200().budget();
  const double tokens = 32768, h = 2048, vocab = 50304, layers = 24;
  const double activation = 2 * tokens * h;
  auto flop = by_kind(b, &BudgetLine::flop);
  EXPECT_DOUBLE_EQ(flop["matmul"], 6 * tokens * h * (layers * 12 * h + vocab));  // 257.7 TFLOP
  EXPECT_DOUBLE_EQ(flop["attention"], layers * 2 * tokens * 2048 * h);           // 6.6 TFLOP, causal
  EXPECT_DOUBLE_EQ(flop["attention_backward"], 2 * flop["attention"]);
  EXPECT_DOUBLE_EQ(b.model_flop, b.rates.flops * b.mfu(1));
  auto bytes = by_kind(b, &BudgetLine::bytes);
  // A rank holds the whole product, whose epilogue adds the residual: the norm reads their sum and writes one tensor.
  EXPECT_NEAR(bytes["layer_norm"] / (activation * 2 * 49), 1, 0.01);
  EXPECT_NEAR(bytes["layer_norm_backward"] / (activation * 4 * 48 + activation * 3), 1, 0.01);
  EXPECT_NEAR(bytes["cross_entropy"] / (2 * 2 * tokens * vocab), 1, 0.01);        // logits read and written
  EXPECT_NEAR(bytes["attention"] / (layers * 4 * activation), 1, 0.01);           // q, k, v, out
  EXPECT_NEAR(bytes["attention_backward"] / (layers * 8 * activation), 1, 0.01);  // and the gradients of these
  const double parameters = layers * 12 * h * h + (vocab + 2048) * h;
  EXPECT_NEAR(bytes["adamw"] / (30 * parameters), 1, 0.01);  // reads w, m, v, g in fp32, writes w, m, v and bf16
}

TEST(Budget, RanksThatShareASequenceHaveTheSame) {
  const auto with = [](int context) {
    return plan::budget(test::small_experiment().model, config::BackendKind::sim, sharing_a_sequence(context),
                        config::hardware_named("h200-sxm"));
  };
  const Budget alone = with(1), pairs = with(2);
  for (const char* kind : {"matmul", "attention", "attention_backward"}) {
    const double flop = by_kind(alone, &BudgetLine::flop)[kind];
    EXPECT_NEAR(by_kind(pairs, &BudgetLine::flop)[kind], flop, 1e-9 * flop) << kind;
  }
  EXPECT_NEAR(pairs.model_flop, alone.model_flop, 1e-9 * alone.model_flop);
}

TEST(Budget, ItsMfuIsAnUpperLimit) {
  const Budget b = OneH200().budget();
  EXPECT_NEAR(b.mfu(b.least_s), 277.5e12 / b.least_s / 989.4e12, 1e-3);
  double sum = 0;
  for (const auto& [kind, seconds] : by_kind(b, &BudgetLine::least_s)) sum += seconds;
  EXPECT_DOUBLE_EQ(sum, b.least_s);
}

// Updates that overlap the backward pass are listed as before. Only the last buckets count in the sum, mainly that of
// the embedding.
TEST(Budget, WhatRunsBesideTheBackwardPassIsNotInTheSum) {
  const Budget after = OneH200().budget(), beside = OneH200("overlap_optimizer=true").budget();
  const double update = by_kind(after, &BudgetLine::least_s)["adamw"];
  EXPECT_NEAR(by_kind(beside, &BudgetLine::least_s)["adamw"], update, 1e-6 * update);
  const double saved = after.least_s - beside.least_s;
  EXPECT_LT(saved, update);
  EXPECT_GT(saved, update / 2);
}

// Recomputation repeats the forward FLOP in the backward pass, which MFU does not count.
TEST(Budget, ListsWhatIsRecomputedApart) {
  const Budget once = OneH200().budget(), again = OneH200("recompute=full").budget();
  const auto flop = [](const Budget& b, bool recomputed) {
    double sum = 0;
    for (const BudgetLine& line : b.lines) sum += line.recomputed == recomputed ? line.flop : 0;
    return sum;
  };
  EXPECT_EQ(flop(once, true), 0);
  EXPECT_DOUBLE_EQ(flop(again, false), flop(once, false));
  EXPECT_DOUBLE_EQ(again.model_flop, once.model_flop);
  double of_layers = 0;  // forward pass without the head
  for (const BudgetLine& line : once.lines) {
    if (line.phase == program::Phase::forward && line.what != "head") of_layers += line.flop;
  }
  EXPECT_DOUBLE_EQ(flop(again, true), of_layers);
}

TEST(Budget, ShowsTheStageThatTakesLongest) {
  const config::Experiment e = config::load_experiment(
      test::source_dir() + "/configs/h200.yaml", {"layout={tensor_parallel: 1, pipeline_parallel: 4}", "ranks=4"});
  const Plan plan = prepare(e, 4, {"baseline"});
  const Budget b = budget(e.model, config::BackendKind::cuda, plan.baseline(), *e.hardware);
  EXPECT_EQ(b.roles, 4);
  EXPECT_EQ(b.role, 3);                                                        // it has the head
  EXPECT_NEAR(4 * b.model_flop / plan.baseline().survey.flop.model, 1, 1e-9);  // but MFU counts the FLOP of all stages
}

TEST(Budget, RefusesWhatItCannotKnow) {
  OneH200 job;
  job.plan.experiment.hardware->memory_bytes_per_s = 0;
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no memory_bandwidth"));
  job.plan.experiment.hardware->peaks_flops.erase(config::Precision::bf16);
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no peak"));
  const config::Experiment e = config::load_experiment(test::source_dir() + "/configs/collectives.yaml", {});
  const config::Hardware hardware = *OneH200().plan.experiment.hardware;
  EXPECT_THAT(test::error_of([&] {
                budget(e.model, config::BackendKind::cuda, prepare(e, 4, {"baseline"}).baseline(), hardware);
              }),
              HasSubstr("computes nothing"));
}

}  // namespace
}  // namespace harness::plan
