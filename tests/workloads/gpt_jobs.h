#pragma once

// Training steps small enough to count their bytes by hand, with helpers for tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "program/count.h"
#include "program/expand.h"
#include "program/program.h"
#include "workloads/gpt/gpt.h"
#include "workloads/gpt/parameters.h"
#include "workloads/workload.h"

namespace harness::workloads {

/// A training step, before it is built.
struct Job {
  config::Model model;
  config::Settings settings;
  program::Layout layout;
};

inline Job job(config::Model model, int tp, int pp, int dp, std::int64_t micro_batches,
               std::int64_t micro_batch_size = 1) {
  Job j{std::move(model), {}, {}};
  j.settings.layout = {{program::Axis::tensor, tp}, {program::Axis::pipeline, pp}};
  j.settings.micro_batch_size = micro_batch_size;
  j.settings.global_batch_size = dp * micro_batches * micro_batch_size;
  j.layout.size = {tp, 1, dp, pp};
  return j;
}

inline program::ProgramSet build(const Job& j) {
  return build_programs(j.model, j.settings, j.layout);
}

inline const config::Model small_gpt{"m", 4, 64, 4, 256, 32};
inline constexpr std::int64_t small_batch = 2;                     // sequences of a micro-batch
inline constexpr std::int64_t small_rows = 32 * small_batch;       // s b
inline constexpr std::int64_t small_stream = 2 * small_rows * 64;  // bytes of a bf16 residual stream, 2 s b h

inline Job small_job(int tp, int pp, int dp = 1, int micro_batches = 3) {
  Job j = job(small_gpt, tp, pp, dp, micro_batches, small_batch);
  j.settings.precision = config::Precision::bf16;
  return j;
}

inline Job sharded(int tp, int pp, int dp, int micro_batches = 2,
                   config::Sharding sharding = config::Sharding::optimizer) {
  Job j = small_job(tp, pp, dp, micro_batches);
  j.settings.sharding = sharding;
  j.settings.bucket_size_bytes = 64 << 10;
  return j;
}

/// Sharding within a node, which has this many replicas.
inline Job sharded_on_nodes(int tp, int pp, int dp, int of_node, config::Sharding sharding, int micro_batches = 2) {
  Job j = sharded(tp, pp, dp, micro_batches, sharding);
  j.settings.sharding_group = config::ShardingGroup::node;
  j.layout.replicas_of_node = of_node;
  return j;
}

inline config::Model small_llama() {
  config::Model m{"llama", 4, 64, 8, 256, 32};
  m.kv_heads = 4;
  m.ffn = 96;
  m.activation = config::Activation::swiglu;
  m.norm = config::NormKind::rms_norm;
  m.positions = config::Positions::rotary;
  m.tied_embeddings = m.biases = false;
  return m;
}

/// GPT-2 with each of today's options alone, and a Llama with all of them.
inline std::vector<config::Model> mixtures() {
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

inline std::string texts(const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& problem : problems) all += problem + "\n";
  return all;
}

/// Returns why the workload refuses the job; "" if it does not.
inline std::string refusal(const Job& j) {
  const std::string why = gpt_workload().why_impossible(j.model, j.settings);
  return why.empty() ? gpt_workload().why_impossible_on(j.model, j.settings, j.layout) : why;
}

/// Expects a refusal in these words, or with "" none.
inline void expect_refusal(const Job& j, const std::string& says) {
  if (says.empty()) {
    EXPECT_EQ(refusal(j), "");
  } else {
    EXPECT_THAT(refusal(j), ::testing::HasSubstr(says));
  }
}

/// The sizes of a stage's flat buffers: with the padding of buckets, and without; and the number of buckets.
struct Elements {
  std::int64_t flat = 0, parameters = 0, buckets = 0;
};
inline Elements elements_of(const Job& j, int stage = 0) {
  const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
  const auto buckets = gpt::bucket_places(list, gpt::shards_of(j.settings, j.layout));
  Elements n{buckets.front().offset + buckets.front().count, 0, std::ssize(buckets)};
  for (const auto& p : list) n.parameters += p.count();
  return n;
}

/// Returns the elements of a bucket, by number: where layers are buckets, 0 is the final norm and 1 the last layer.
inline std::int64_t elements_of_bucket(const Job& j, int bucket, int stage = 0) {
  const auto list = gpt::parameters(j.model, j.settings, j.layout, stage);
  return gpt::bucket_places(list, gpt::shards_of(j.settings, j.layout))[bucket].count;
}

/// Returns the total bytes of the buffers with these names.
inline std::int64_t bytes_of(const program::Program& p, const std::vector<std::string>& names) {
  std::int64_t bytes = 0;
  for (const program::Buffer& b : p.buffers) bytes += std::ranges::count(names, b.name) > 0 ? b.bytes() : 0;
  return bytes;
}

}  // namespace harness::workloads
