// Whether a case trains as the baseline does, judged by gradient norms: correct layouts pass, planted faults show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cases.h"
#include "local_job.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;

const config::Model small{"small", 2, 64, 4, 128, 32};

config::Settings settings_on(const program::Layout& layout) {
  return test::settings_on(layout, 8, 4 / layout[program::Axis::data]);
}

// The data that a sweep has on a case's training; after one step, only the gradient.
struct Signs {
  store::ResultGradient gradient;
  std::vector<float> losses;
};

Signs signs_of(const config::Settings& settings, const program::ProgramSet& programs, int steps = 1,
               const config::Model& model = small) {
  const program::Layout& layout = programs.layout;
  LocalJob job(programs, model, settings);
  job.run(1);
  store::ResultGradient sum;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const workloads::GradientPart& part :
         workloads::gpt_workload().gradients(model, settings, layout, layout.coordinates(rank), job.program(rank))) {
      double squares = 0;
      for (const float x : job.read(rank, gpt::gradient_buffer, part.view.offset, part.view.count))
        squares += double{x} * x;
      (part.sharded ? sum.sharded_squares : sum.replicated_squares) += squares / part.holders;
    }
  }
  if (steps == 1) return {sum, {}};
  job.run(steps - 1);
  return {sum, job.losses(0)};
}

Signs of_one_rank(config::Precision precision = config::Precision::fp32) {
  config::Settings alone = settings_on({});
  alone.precision = precision;
  return signs_of(alone, gpt::programs(small, alone, {}));
}

// Returns the departure that a sweep finds with these two cases of one block each; "" if they train alike.
std::string departure(const Signs& baseline, const Signs& other, const std::string& precision = "fp32") {
  store::Result result;
  result.variables = {"precision"};
  result.warmup_steps = 1;
  result.steps = static_cast<std::int32_t>(baseline.losses.size()) - 1;
  for (const Signs* signs : {&baseline, &other}) {
    const auto index = static_cast<std::int32_t>(result.cases.size());
    store::ResultCase& row = result.cases.emplace_back();
    row.name = index == 0 ? "baseline" : "layout=other";
    row.settings = {precision};
    result.gradients.push_back(signs->gradient);
    result.gradients.back().case_index = index;
    store::ResultBlock& block = result.blocks.emplace_back();
    block.case_index = index;
    block.status = store::BlockStatus::ok;
    result.losses.push_back(signs->losses);
    result.step_seconds.emplace_back(signs->losses.size(), 1.0F);
  }
  return analysis::why_trains_differently(result, 1);
}

TEST(Departures, NoLayoutTrainsDifferently) {
  for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
    const Signs one_rank = of_one_rank(precision);
    EXPECT_GT(one_rank.gradient.sharded_squares, 0);
    EXPECT_GT(one_rank.gradient.replicated_squares, 0);
    for (const auto& layout : {layout_of(2, 1, 1), layout_of(1, 2, 1), layout_of(1, 1, 2), layout_of(2, 2, 2)}) {
      config::Settings s = settings_on(layout);
      s.precision = precision;
      EXPECT_EQ(departure(one_rank, signs_of(s, gpt::programs(small, s, layout)), config::name_of(precision)), "")
          << layout[program::Axis::tensor] << layout[program::Axis::pipeline] << layout[program::Axis::data];
    }
  }
}

// Moves every all-reduce over `group` with this label to a group of one rank.
program::ProgramSet without(program::ProgramSet set, const std::string& what, program::GroupId group) {
  set.groups.push_back({"alone", program::AxisSet{}, {}});
  const auto alone = static_cast<program::GroupId>(set.groups.size() - 1);
  int dropped = 0;
  for (program::Program& role : set.roles) {
    for (program::Operation& op : role.step) {
      auto* reduction = std::get_if<program::AllReduce>(&op.action);
      if (reduction == nullptr || reduction->group != group || op.label.what != what) continue;
      reduction->group = alone;
      ++dropped;
    }
  }
  EXPECT_GT(dropped, 0) << what;
  return set;
}

TEST(Departures, AReductionThatIsLeftOutShows) {
  const Signs one_rank = of_one_rank();
  const auto dropped = [&](const program::Layout& layout, const std::string& what, program::GroupId group) {
    const config::Settings s = settings_on(layout);
    return departure(one_rank, signs_of(s, without(gpt::programs(small, s, layout), what, group)));
  };
  EXPECT_NE(dropped(layout_of(1, 1, 2), "gradient bucket", gpt::data_group), "");
  EXPECT_NE(dropped(layout_of(1, 2, 1), "tied embedding", gpt::embedding_group), "");
  EXPECT_NE(dropped(layout_of(2, 1, 1), "fc1 input gradient", gpt::tensor_group), "");
  EXPECT_NE(dropped(layout_of(2, 1, 1), "fc2", gpt::tensor_group), "");
}

// Faults of other levers: a fault that a gradient test finds must show in a sweep, too.
TEST(Departures, FaultsOfLeversShow) {
  const Signs one_rank = of_one_rank();
  const auto departs = [&](const config::Settings& s, const program::ProgramSet& set) {
    return departure(one_rank, signs_of(s, set));
  };

  config::Settings divided = settings_on(layout_of(2, 1, 1));
  divided.sequence_parallel = true;
  const program::ProgramSet honest = gpt::programs(small, divided, layout_of(2, 1, 1));
  EXPECT_EQ(departs(divided, honest), "");
  EXPECT_THAT(departs(divided, without(honest, "gradients of own rows", gpt::tensor_group)),
              ::testing::HasSubstr("of norms, biases and positions"));

  config::Settings again = settings_on({});
  again.recompute = config::Recompute::full;
  program::ProgramSet stale = gpt::programs(small, again, {});
  EXPECT_EQ(departs(again, stale), "");
  program::View of_first;  // the input of the first micro-batch's recomputation of a layer
  for (program::Operation& op : stale.roles[0].step) {
    auto* norm = std::get_if<program::LayerNorm>(&op.action);
    if (norm == nullptr || !op.label.recomputed || op.label.layer != 1 || op.label.what != std::string("norm1"))
      continue;
    if (op.label.micro_batch == 0) of_first = norm->in;
    if (op.label.micro_batch == 1) norm->in = of_first;
  }
  ASSERT_TRUE(of_first.present());
  EXPECT_NE(departs(again, stale), "");

  config::Settings chunks = settings_on(layout_of(1, 2, 1));
  chunks.pipeline_schedule = config::PipelineSchedule::interleaved;
  const config::Model four_layers{"small", 4, 64, 4, 128, 32};
  EXPECT_EQ(chunks.chunks_of_stage(), 2);
  program::ProgramSet swapped = gpt::programs(four_layers, chunks, layout_of(1, 2, 1));
  const Signs whole = signs_of(chunks, swapped, 1, four_layers);
  std::vector<program::CrossEntropy*> losses;  // by micro-batch, in the last chunk
  for (program::Operation& op : swapped.roles[1].step) {
    if (auto* loss = std::get_if<program::CrossEntropy>(&op.action)) losses.push_back(loss);
  }
  ASSERT_EQ(losses.size(), 4u);
  std::swap(losses[0]->labels, losses[1]->labels);  // as if chunks disagreed on the micro-batch
  EXPECT_EQ(departure(whole, whole), "");
  EXPECT_NE(departure(whole, signs_of(chunks, swapped, 1, four_layers)), "");
}

TEST(Departures, FaultsOfShardsShow) {
  const program::Layout layout = layout_of(1, 2, 2);
  config::Settings s = settings_on(layout);
  const Signs whole = signs_of(s, gpt::programs(small, s, layout), 3);
  s.sharding = config::Sharding::optimizer;
  const program::ProgramSet honest = gpt::programs(small, s, layout);
  const auto departs = [&](const program::ProgramSet& set) { return departure(whole, signs_of(s, set, 3)); };
  EXPECT_EQ(departs(honest), "");

  // Weights are gathered before the update, so the next step trains with stale weights: its gradients are the first to
  // be wrong.
  program::ProgramSet stale = honest;
  for (program::Program& role : stale.roles) {
    std::vector<program::Operation> others, gathers;
    for (const program::Operation& op : role.step) {
      const bool gathers_weights = std::holds_alternative<program::AllGather>(op.action);
      (gathers_weights ? gathers : others).push_back(op);
    }
    ASSERT_GT(gathers.size(), 1u);
    const auto update =
        std::ranges::find_if(others, [](const auto& op) { return std::holds_alternative<program::AdamW>(op.action); });
    others.insert(update, gathers.begin(), gathers.end());
    role = test::rebuilt(role, others, [](const auto&...) {});
  }
  EXPECT_THAT(departs(stale), ::testing::HasSubstr("the loss of step 3"));

  // A bucket is not reduced: each rank updates its part with its own gradients.
  program::ProgramSet dropped = honest;
  int left_out = 0;
  for (program::Operation& op : dropped.roles[0].step) {
    const auto* reduction = std::get_if<program::ReduceScatter>(&op.action);
    if (reduction == nullptr || left_out++ > 0) continue;
    op.action = program::Convert{reduction->out, program::View(reduction->out)};
  }
  EXPECT_GT(left_out, 1);
  EXPECT_THAT(departs(dropped), ::testing::HasSubstr("the squared norm"));

  // Shards are not all-reduced with their copies on the other node.
  program::Layout nodes = layout_of(1, 1, 4);
  nodes.replicas_of_node = 2;
  config::Settings hybrid = settings_on(nodes);
  const Signs alike = signs_of(hybrid, gpt::programs(small, hybrid, nodes), 3);
  hybrid.sharding_group = config::ShardingGroup::node;
  for (const auto sharding : {config::Sharding::optimizer, config::Sharding::parameters}) {
    hybrid.sharding = sharding;
    const program::ProgramSet sound = gpt::programs(small, hybrid, nodes);
    EXPECT_EQ(departure(alike, signs_of(hybrid, sound, 3)), "");
    const program::ProgramSet apart = without(sound, "gradient bucket", gpt::across_group);
    EXPECT_THAT(departure(alike, signs_of(hybrid, apart, 3)), ::testing::HasSubstr("the squared norm"));
  }

  // The stages cut the tied table at different offsets.
  program::ProgramSet elsewhere = honest;
  for (program::Operation& op : elsewhere.roles[1].step) {
    if (op.label.what == std::string_view("tied embedding")) {
      std::get<program::AllReduce>(op.action).data.offset -= small.hidden;
    }
  }
  EXPECT_THAT(departs(elsewhere), ::testing::HasSubstr("the squared norm"));
}

}  // namespace
}  // namespace harness
