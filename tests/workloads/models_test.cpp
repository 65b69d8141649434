// What a step of today's models is: their parameters, FLOPs and operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "config/experiment.h"
#include "gpt_jobs.h"
#include "program/count.h"
#include "program/lower.h"
#include "workloads/gpt/parameters.h"

namespace harness::workloads {
namespace {

using testing::HasSubstr;

config::Model small_llama() {
  config::Model m{"m", 4, 64, 8, 256, 32};
  m.kv_heads = 4;
  m.ffn = 96;
  m.activation = config::Activation::swiglu;
  m.norm = config::NormKind::rms_norm;
  m.positions = config::Positions::rotary;
  m.tied_embeddings = m.biases = false;
  return m;
}

// Each option alone, then all.
std::vector<config::Model> mixtures() {
  std::vector<config::Model> all;
  const auto add = [&](const char* name, const std::function<void(config::Model&)>& change) {
    config::Model m{name, 4, 64, 8, 256, 32};
    change(m);
    all.push_back(m);
  };
  add("kv_heads", [](auto& m) { m.kv_heads = 4; });
  add("ffn", [](auto& m) { m.ffn = 96; });
  add("swiglu", [](auto& m) { m.activation = config::Activation::swiglu; });
  add("rms_norm", [](auto& m) { m.norm = config::NormKind::rms_norm; });
  add("rotary", [](auto& m) { m.positions = config::Positions::rotary; });
  add("untied", [](auto& m) { m.tied_embeddings = false; });
  add("without biases", [](auto& m) { m.biases = false; });
  all.push_back(small_llama());
  return all;
}

// Of the whole model, each tensor once.
std::int64_t parameters_of(const config::Model& m, const program::Layout& layout = {}) {
  std::int64_t end = 0;
  for (int stage = 0; stage < layout[program::Axis::pipeline]; ++stage) {
    for (const gpt::Parameter& p : gpt::parameters(m, {}, layout, stage)) {
      std::int64_t count = 0;
      for (const gpt::Slice& s : p.slices) count += s.outer * s.full * s.inner;
      EXPECT_EQ(p.view.count, p.count());
      if (p.tied && p.first_index == 0 && stage > 0) continue;  // the head's copy of the table
      EXPECT_EQ(p.first_index, end) << m.name << ", " << p.name;
      end += count;
    }
  }
  return end;
}

TEST(Models, PresetsHaveAsManyParametersAsThoseThatWerePublished) {
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameters_of(*config::model_preset("llama3-405b")), 405'853'388'800);
}

TEST(Models, ParametersNumberTheWholeModelOnceWhateverItsOptions) {
  program::Layout split;
  split[program::Axis::tensor] = 2;
  split[program::Axis::pipeline] = 3;
  for (const config::Model& m : mixtures()) EXPECT_EQ(parameters_of(m, split), parameters_of(m)) << m.name;
}

// 6 B s (L h (2 h + 2 k + g f + s) + V h), docs/method.md.
double closed_flop(const config::Model& model, double batch) {
  const config::Model m = model.resolved();
  const auto l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden), s = static_cast<double>(m.sequence),
             v = static_cast<double>(m.vocab), k = h * static_cast<double>(m.kv_heads) / static_cast<double>(m.heads),
             f = static_cast<double>(m.ffn);
  const double g = m.activation == config::Activation::swiglu ? 3 : 2;
  return 6 * batch * s * (l * h * (2 * h + 2 * k + g * f + s) + v * h);
}

TEST(Models, FlopEqualClosedFormula) {
  std::vector<config::Model> all = mixtures();
  all.push_back(*config::model_preset("llama3-8b"));
  for (const config::Model& m : all) {
    for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, std::array{2, 2, 2}, std::array{4, 3, 1}}) {
      const Job j = job(m, tp, pp, dp, 3);
      const auto batch = static_cast<double>(j.settings.global_batch_size);
      EXPECT_NEAR(program::total_flop(build(j)).model / closed_flop(m, batch), 1, 1e-12) << m.name;
    }
  }
  const Job large = job(*config::model_preset("llama3-405b"), 8, 16, 1, 1);
  EXPECT_NEAR(program::total_flop(build(large)).model / 8192 / 1e12, 2.5240, 5e-5);
  EXPECT_THAT(gpt_workload().flop_formula(large.model), HasSubstr("3 f"));
  EXPECT_THAT(gpt_workload().flop_formula(*config::model_preset("gpt3-1.3b")), HasSubstr("72 B s L h^2"));
}

// With sequence parallelism, recomputation, every schedule, and in finer operations.
TEST(Models, EveryMixtureVerifies) {
  const auto verifies = [](const Job& j, const std::string& what) {
    const program::ProgramSet set = build(j);
    for (const program::FusedSet fused : {program::all_fused, program::FusedSet{0}}) {
      EXPECT_EQ(texts(program::verify(program::lower(set, fused))), "") << j.model.name << ", " << what;
    }
  };
  for (const config::Model& m : mixtures()) {
    for (const auto& [tp, pp, dp] :
         {std::array{1, 1, 1}, std::array{2, 1, 1}, std::array{1, 2, 2}, std::array{2, 2, 1}}) {
      Job j = job(m, tp, pp, dp, 4, 2);
      j.settings.precision = config::Precision::bf16;
      j.settings.bucket_size_bytes = 32 << 10;
      verifies(j, "plain");
      j.settings.sequence_parallel = true;
      j.settings.recompute = config::Recompute::full;
      verifies(j, "sequence_parallel, recompute full");
      j.settings.recompute = config::Recompute::selective;
      j.settings.attention = config::AttentionKind::unfused;
      j.settings.overlap_optimizer = true;
      verifies(j, "recompute selective, overlap_optimizer");
      if (pp == 1) continue;
      j.settings.recompute = config::Recompute::none;
      j.settings.sequence_parallel = false;
      for (const auto schedule : {config::PipelineSchedule::gpipe, config::PipelineSchedule::interleaved}) {
        j.settings.pipeline_schedule = schedule;
        verifies(j, "schedule " + std::to_string(static_cast<int>(schedule)));
      }
    }
  }
}

template <class Op>
std::int64_t count_of(const program::Program& p) {
  return std::ranges::count_if(p.step, [](const auto& op) { return std::holds_alternative<Op>(op.action); });
}

TEST(Models, ALlamaHasNoneOfTheOperationsOfGpt2) {
  const Job j = job(small_llama(), 2, 2, 1, 3);
  for (const program::Program& p : build(j).roles) {
    EXPECT_EQ(count_of<program::LayerNorm>(p) + count_of<program::LayerNormBackward>(p), 0);
    EXPECT_EQ(count_of<program::ColumnSum>(p), 0);     // no bias has a gradient
    EXPECT_EQ(count_of<program::Rope>(p), 3 * 2 * 2);  // micro-batches, layers, forward and backward
    EXPECT_EQ(count_of<program::SwiGlu>(p), 3 * 2);
    for (const program::Operation& op : p.step) {
      EXPECT_NE(op.label.what, "tied embedding");
      if (const auto* m = std::get_if<program::Matmul>(&op.action)) {
        EXPECT_FALSE(m->bias.present() || m->bias_gradient.present());
        EXPECT_EQ(m->epilogue, program::Epilogue::none);
      }
    }
  }
}

// A head of its own replaces its gradient; nothing replaces that of the table, to which every micro-batch adds.
TEST(Models, AnUntiedTablesGradientBeginsAtZero) {
  for (const bool tied : {true, false}) {
    config::Model m = small_llama();
    m.tied_embeddings = tied;
    const program::Program p = build(job(m, 1, 1, 1, 2)).roles[0];
    bool zeroed = false;
    for (const program::Operation& op : p.step) {
      const auto* fill = std::get_if<program::Fill>(&op.action);
      if (fill != nullptr && op.label.what == "embedding gradient") zeroed = fill->out.count == 256 * 64;
    }
    EXPECT_EQ(zeroed, !tied);
  }
}

TEST(Models, TensorRanksDivideHeadsOfKeysAndTheMlp) {
  const auto why = [](const config::Model& m, int tensor) {
    config::Settings s;
    s.layout[program::Axis::tensor] = tensor;
    return gpt_workload().why_impossible(m, s);
  };
  EXPECT_EQ(why(small_llama(), 4), "");
  EXPECT_EQ(why(small_llama(), 8), "tensor_parallel 8 does not divide kv_heads 4; nearest that does: 4");
  config::Model m = small_llama();
  m.ffn = 98;
  EXPECT_EQ(why(m, 4), "tensor_parallel 4 does not divide ffn 98; nearest that does: 2 or 7");
  EXPECT_EQ(why(*config::model_preset("llama3-405b"), 16),
            "tensor_parallel 16 does not divide kv_heads 8; nearest that does: 8");
}

// As a file may say that something else has written: where numbers are divided by others, heads 0 would end the
// program.
TEST(Models, AModelThatNoConfigurationCouldSayIsRefused) {
  const auto why = [](std::int64_t config::Model::*value, std::int64_t wrong) {
    config::Model m = small_llama();
    m.*value = wrong;
    return gpt_workload().why_impossible(m, {});
  };
  using config::Model;
  EXPECT_EQ(why(&Model::ffn, 0), "");
  EXPECT_EQ(why(&Model::kv_heads, 0), "");
  EXPECT_EQ(why(&Model::heads, 0), "the model has heads 0; allowed: 1 to 100000000");
  for (const auto value : {&Model::layers, &Model::hidden, &Model::heads, &Model::vocab, &Model::sequence}) {
    EXPECT_NE(why(value, 0), "");
    EXPECT_NE(why(value, -8), "");
  }
  EXPECT_EQ(why(&Model::kv_heads, -4), "the model has kv_heads -4; allowed: 0 to 100000000");
  EXPECT_EQ(why(&Model::ffn, -96), "the model has ffn -96; allowed: 0 to 100000000");
  EXPECT_EQ(why(&Model::heads, 7), "heads 7 does not divide hidden 64; allowed: divisors of it, such as 4 or 8");
  EXPECT_EQ(why(&Model::kv_heads, 3), "kv_heads 3 does not divide heads 8; allowed: divisors of it, such as 2 or 4");
  config::Model m = small_llama();
  m.rope_theta = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(gpt_workload().why_impossible(m, {}),
            "the model has rope_theta nan; allowed: 0 or a number above 1 up to 1e12");
}

}  // namespace
}  // namespace harness::workloads
