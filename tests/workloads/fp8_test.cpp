// The step with `precision: fp8` and `mxfp8`: how often each tensor is quantised, with which scales, and which sizes
// are refused before a Program is built.
#include <map>
#include <utility>

#include "gpt_jobs.h"

namespace harness::workloads {
namespace {

using config::Precision;
using config::Recompute;
using config::Sharding;

const config::Model for_fp8{"m", 4, 64, 4, 256, 32};

Job in(Precision precision, Job j) {
  j.settings.precision = precision;
  return j;
}

int quantised(const program::Program& p, std::string_view what) {
  return static_cast<int>(std::ranges::count_if(p.step, [&](const program::Operation& op) {
    return std::holds_alternative<program::Quantise>(op.action) && op.label.what == what;
  }));
}

// 4 layers of 4 products, 3 micro-batches.
TEST(Fp8Step, QuantisesEachTensorOnce) {
  for (const Precision precision : {Precision::fp8, Precision::mxfp8}) {
    Job j = in(precision, job(for_fp8, 1, 1, 2, 3, 2));
    program::Program p = build(j).roles.front();
    EXPECT_EQ(quantised(p, "weight"), 16);  // once, in the first micro-batch
    EXPECT_EQ(quantised(p, "input"), 16 * 3);
    EXPECT_EQ(quantised(p, "output gradient"), 16 * 3);
    // A recomputed layer quantises its inputs again, and gathered weights are quantised in each pass.
    j.settings.recompute = Recompute::full;
    p = build(j).roles.front();
    EXPECT_EQ(quantised(p, "weight"), 16);
    EXPECT_EQ(quantised(p, "input"), 2 * 16 * 3);
    j.settings.recompute = Recompute::none;
    j.settings.sharding = Sharding::parameters;
    EXPECT_GT(quantised(build(j).roles.front(), "weight"), 16 * 3);
    // With sequence parallelism two of a layer's four inputs are gathered again for the backward pass.
    j = in(precision, job(for_fp8, 2, 1, 1, 3, 2));
    j.settings.sequence_parallel = true;
    EXPECT_EQ(quantised(build(j).roles.front(), "input"), (16 + 8) * 3);
  }
}

// Each factor of a product has the block scales that were made with it, along the product's sum. A transposed copy has
// its own scales.
TEST(Mxfp8Step, EachCopyOfATensorHasItsOwnScalesOfBlocks) {
  for (const bool sequence_parallel : {false, true}) {
    Job j = in(Precision::mxfp8, job(for_fp8, sequence_parallel ? 2 : 1, 1, 1, 2, 2));
    j.settings.sequence_parallel = sequence_parallel;
    const program::ProgramSet set = build(j);
    EXPECT_EQ(texts(program::verify(set)), "");
    const program::Program& p = set.roles.front();
    std::map<program::BufferId, program::View> scales_of;
    int products = 0;
    for (const program::Operation& op : p.step) {
      if (const auto* q = std::get_if<program::Quantise>(&op.action)) {
        if (q->out.present()) scales_of[q->out.buffer] = q->scale;
        if (q->out_transposed.present()) scales_of[q->out_transposed.buffer] = q->scale_transposed;
        EXPECT_EQ(p.buffer_of(q->either()).type, program::DType::e4m3) << program::title(op);
      }
      const auto* m = std::get_if<program::Matmul>(&op.action);
      if (m == nullptr || !m->a_scale.present()) continue;
      ++products;
      EXPECT_EQ(m->a_scale, scales_of.at(m->a.buffer)) << program::title(op);
      EXPECT_EQ(m->b_scale, scales_of.at(m->b.buffer)) << program::title(op);
    }
    EXPECT_EQ(products, 4 * 4 * 3 * 2);
  }
}

TEST(Fp8Sizes, AreRefusedInALineThatNamesTheSize) {
  using enum Precision;
  struct Row {
    Precision precision;
    int tp;
    std::int64_t micro_batch;
    void (*change)(config::Model&);
    const char* says;  // "": it is possible
  };
  constexpr auto as_it_is = [](config::Model&) {};
  const Row rows[] = {
      {fp8, 1, 1, as_it_is, ""},
      {fp8, 4, 1, as_it_is, ""},
      {fp8, 1, 1, [](config::Model& m) { m.hidden = 72; },
       "precision fp8 multiplies matrices whose sizes are multiples of 16 only, and hidden is 72"},
      {fp8, 4, 1, [](config::Model& m) { m.hidden = 96; }, "hidden / tensor_parallel 4 is 24"},
      {fp8, 2, 1, [](config::Model& m) { m.ffn = 144; }, "ffn / tensor_parallel 2 is 72"},
      {fp8, 1, 1, [](config::Model& m) { m.sequence = 24; }, "micro_batch_size * sequence is 24"},
      {fp8, 1, 2, [](config::Model& m) { m.sequence = 24; }, ""},
      {fp8, 2, 1,
       [](config::Model& m) {
         m.heads = 8;
         m.kv_heads = 2;
       },
       ""},
      {mxfp8, 2, 1, as_it_is, ""},
      {mxfp8, 1, 1, [](config::Model& m) { m.hidden = 80; },
       "precision mxfp8 multiplies matrices whose sizes are multiples of 32 only, and hidden is 80"},
      {mxfp8, 4, 1, as_it_is, "hidden / tensor_parallel 4 is 16"},
      {mxfp8, 1, 1, [](config::Model& m) { m.sequence = 48; }, "micro_batch_size * sequence is 48"},
  };
  for (const Row& row : rows) {
    Job j = in(row.precision, job(for_fp8, row.tp, 1, 1, 1, row.micro_batch));
    row.change(j.model);
    expect_refusal(j, row.says);
  }
}

// Checks cuBLASLt's requirements (see program::Matmul) for each product of a step, without a device: a job is refused
// exactly if a product does not meet them.
TEST(Fp8Sizes, WhatIsNotRefusedFitsCublasLt) {
  int possible = 0, refused = 0;
  for (const std::int64_t hidden : {32, 48, 64, 72, 96}) {
    for (const std::int64_t ffn : {0, 40, 64, 96}) {
      for (const std::int64_t sequence : {8, 16, 24}) {
        for (const std::int64_t micro_batch : {1, 2}) {
          for (const int tp : {1, 2, 4}) {
            for (const auto& [precision, sequence_parallel] : {std::pair{Precision::fp8, false},
                                                               {Precision::fp8, true},
                                                               {Precision::mxfp8, false},
                                                               {Precision::mxfp8, true}}) {
              Job j = in(precision, job({"m", 1, hidden, 4, 64, sequence}, tp, 1, 1, 1, micro_batch));
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

}  // namespace
}  // namespace harness::workloads
