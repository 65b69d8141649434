#pragma once

#include <algorithm>

#include "gpt_jobs.h"
#include "small_gpt.h"
#include "workloads/gpt/parameters.h"

namespace harness::workloads {

inline Job sharded(int tp, int pp, int dp, int micro_batches = 2) {
  Job j = job(small_gpt, tp, pp, dp, micro_batches, small_batch);
  j.settings.precision = config::Precision::bf16;
  j.settings.sharding = config::Sharding::optimizer;
  j.settings.bucket_size_bytes = 64 << 10;
  return j;
}

// Elements of the flat buffers of a stage, with what fills the buckets up; and without.
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

// Of a bucket, by number: where layers are buckets, 0 is the final norm and 1 the last layer.
inline std::int64_t of_unit(const Job& j, int bucket) {
  const auto list = gpt::parameters(j.model, j.settings, j.layout, 0);
  return gpt::bucket_places(list, gpt::shards_of(j.settings, j.layout))[bucket].count;
}

inline std::int64_t bytes_of_model(const program::Program& p) {
  std::int64_t bytes = 0;
  for (const char* name : {"master", "weights", "moment1", "moment2", "gradient"}) {
    const auto found = std::ranges::find(p.buffers, name, &program::Buffer::name);
    if (found != p.buffers.end()) bytes += found->bytes();
  }
  return bytes;
}

}  // namespace harness::workloads
