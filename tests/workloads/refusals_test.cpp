// Jobs that are refused, with messages that suggest a valid value; and levers that leave a step unchanged.
#include <gtest/gtest.h>

#include <limits>

#include "config/experiment.h"
#include "gpt_jobs.h"

namespace harness::workloads {
namespace {

using config::PipelineSchedule;
using config::Sharding;

Job changed(Job j, void (*change)(Job&)) {
  change(j);
  return j;
}

TEST(Refusals, SayWhatWouldDo) {
  constexpr auto interleaved = [](int pp, std::int64_t micro_batches, int chunks = 0) {
    Job j = job({"m", 9, 64, 8, 256, 16}, 1, pp, 1, micro_batches);
    j.settings.pipeline_schedule = PipelineSchedule::interleaved;
    j.settings.virtual_pipeline = chunks;
    return j;
  };
  constexpr auto recomputing = [](int layers) {
    Job j = small_job(1, 2);
    j.settings.recompute = config::Recompute::full;
    j.settings.recompute_layers = layers;
    return j;
  };
  // With this vocabulary, the table has 3 * 2^30 elements, divided among tensor ranks.
  constexpr auto compressed = [](std::int64_t vocab, int tp) {
    Job j = job({"m", 2, 3072, 8, vocab, 16}, tp, 1, 2, 1);
    j.settings.grad_compression = config::GradCompression::top_k;
    return j;
  };
  struct Row {
    Job job;
    const char* says;  // "": it is possible
  };
  const Row rows[] = {
      {interleaved(4, 6),
       "pipeline_schedule interleaved takes micro-batches in groups of pipeline_parallel 4, which does not divide the "
       "6 "
       "of a replica; nearest numbers: 4 or 8"},
      {interleaved(4, 8, 3),
       "pipeline_parallel 4 * virtual_pipeline 3 is more than layers 9: a chunk of a stage has at least one layer"},
      {interleaved(4, 8, 2), ""},
      {changed(interleaved(4, 6), [](Job& j) { j.settings.pipeline_schedule = PipelineSchedule::gpipe; }), ""},
      {recomputing(2), ""},
      {recomputing(3), "more than the 2 layers of a chunk of the model; allowed: 1 to 2"},
      {changed(recomputing(3), [](Job& j) { j.settings.recompute = config::Recompute::none; }), ""},
      {changed(small_job(4, 1),
               [](Job& j) {
                 j.model.sequence = 31;
                 j.settings.sequence_parallel = true;
               }),
       "sequence_parallel: tensor_parallel 4 does not divide the 62 rows of a micro-batch"},
      {changed(small_job(4, 1), [](Job& j) { j.model.sequence = 31; }), ""},
      {sharded(1, 2, 2, 2, Sharding::gradients), "and pipeline_parallel 2 do not go together"},
      {sharded(1, 2, 2, 2, Sharding::parameters), "and pipeline_parallel 2 do not go together"},
      {sharded(1, 2, 1, 2, Sharding::parameters), ""},
      {sharded(1, 1, 2, 2, Sharding::parameters), ""},
      {changed(sharded(1, 1, 2, 2, Sharding::parameters), [](Job& j) { j.settings.prefetch_layers = 4; }),
       "prefetch_layers 4 is more than the 3 other layers"},
      {sharded_on_nodes(1, 1, 4, 2, Sharding::optimizer), ""},
      {sharded_on_nodes(1, 1, 4, 4, Sharding::optimizer), ""},
      {sharded_on_nodes(1, 1, 1, 0, Sharding::optimizer), ""},  // nothing to divide
      {sharded_on_nodes(1, 1, 4, 0, Sharding::none), ""},
      {sharded_on_nodes(1, 1, 4, 0, Sharding::optimizer),
       "it is not known how many ranks share a node; `plan --ranks-per-node N` says it"},
      {sharded_on_nodes(1, 1, 4, 1, Sharding::optimizer), "each of the 4 replicas is on a node of its own"},
      {sharded_on_nodes(1, 1, 4, program::Layout::uneven, Sharding::optimizer),
       "not every node has as many of the 4 replicas"},
      {compressed(1 << 20, 1), "a bucket of 3221280768 gradients has more than indices of 32 bits tell apart"},
      {compressed(1 << 20, 2), ""},
      {job(small_llama(), 4, 1, 1, 1), ""},
      {job(small_llama(), 8, 1, 1, 1), "tensor_parallel 8 does not divide kv_heads 4; nearest that does: 4"},
      {changed(job(small_llama(), 4, 1, 1, 1), [](Job& j) { j.model.ffn = 98; }),
       "tensor_parallel 4 does not divide ffn 98; nearest that does: 2 or 7"},
      {job(*config::model_preset("llama3-405b"), 16, 1, 1, 1),
       "tensor_parallel 16 does not divide kv_heads 8; nearest that does: 8"},
  };
  for (const Row& row : rows) expect_refusal(row.job, row.says);
}

// A file from another program may hold such a model, and a division by heads 0 would crash.
TEST(Refusals, OfAModelThatNoConfigurationCouldSay) {
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

// Equal hashes: even the waits are the same.
TEST(Levers, WithNothingToDoLeaveTheProgramAsItIs) {
  const auto hash = [](const Job& j) { return program::hash(build(j)); };
  const Job plain = small_job(1, 2, 2);
  EXPECT_EQ(hash(changed(plain, [](Job& j) { j.settings.sequence_parallel = true; })), hash(plain));
  EXPECT_EQ(hash(sharded(2, 2, 1)), hash(sharded(2, 2, 1, 2, Sharding::none)));
  const Job fused = small_job(2, 1);
  EXPECT_EQ(hash(changed(fused, [](Job& j) { j.settings.recompute = config::Recompute::selective; })), hash(fused));

  Job of_node = sharded_on_nodes(2, 1, 4, 4, Sharding::parameters);  // all of them on one node
  const auto of_all = hash(of_node);
  of_node.settings.sharding_group = config::ShardingGroup::data;
  for (const int replicas : {4, 0, 2}) {  // without a sharding of nodes, placement changes nothing
    of_node.layout.replicas_of_node = replicas;
    EXPECT_EQ(hash(of_node), of_all);
  }
  of_node.settings.sharding_group = config::ShardingGroup::node;
  EXPECT_NE(hash(of_node), of_all);
}

TEST(Levers, AccumulationMakesTheBatchFollowTheLayout) {
  const Job by_batch = job(small_gpt, 1, 2, 2, 6, 3);
  Job by_accumulation = by_batch;
  by_accumulation.settings.gradient_accumulation = 6;
  by_accumulation.settings.global_batch_size = 1;  // without effect
  EXPECT_EQ(program::hash(build(by_accumulation)), program::hash(build(by_batch)));
  EXPECT_EQ(gpt::global_batch(by_accumulation.settings, by_accumulation.layout), 6 * 3 * 2);
  for (const int replicas : {1, 2, 8}) {
    by_accumulation.layout[program::Axis::data] = replicas;
    const config::Settings& s = by_accumulation.settings;
    EXPECT_EQ(gpt_workload().micro_batches(s, by_accumulation.layout), 6);
    EXPECT_EQ(gpt_workload().tokens_per_step(small_gpt, s, by_accumulation.layout), 6 * 3 * 32 * replicas);
    EXPECT_EQ(refusal(by_accumulation), "");
  }
  by_accumulation.settings.gradient_accumulation = 1 << 16;
  by_accumulation.settings.micro_batch_size = std::int64_t{1} << 31;
  EXPECT_NE(refusal(by_accumulation), "");
}

}  // namespace
}  // namespace harness::workloads
