#include "workloads/gpt/schedule.h"

#include <algorithm>

#include "base/text.h"

namespace harness::gpt {
namespace {

// Every schedule takes the micro-batches of a chunk in order.
Pass pass_of(const Pipeline& of, Phase phase, int micro_batch, int chunk) {
  const bool backward = phase == Phase::backward;
  return {phase, micro_batch, chunk, backward && micro_batch == 0, backward && micro_batch + 1 == of.micro_batches};
}

// Returns the k-th pass of a stage in one direction: as many micro-batches as there are stages go through one chunk,
// then through the next one in this direction.
Pass numbered(const Pipeline& of, Phase phase, int k) {
  const int turn = of.stages * of.chunks, chunk = k % turn / of.stages;
  const int micro_batch = k / turn * of.stages + k % of.stages;
  return pass_of(of, phase, micro_batch, phase == Phase::forward ? chunk : of.chunks - 1 - chunk);
}

}  // namespace

std::vector<Chunk> chunks_of(const Model& model, const Settings& settings, const Layout& layout, int stage) {
  const int stages = layout[Axis::pipeline], runs = stages * settings.chunks_of_stage();
  const int outside = settings.embedding_as_layer && runs > 1 ? 1 : 0;
  const int layers = static_cast<int>(model.layers) + 2 * outside, each = layers / runs, longer = layers % runs;
  std::vector<Chunk> list;
  for (int run = stage; run < runs; run += stages) {
    const int less = (run == 0 ? outside : 0) + (run + 1 == runs ? outside : 0);
    list.push_back({.first_layer = std::max(0, run * each + std::min(run, longer) - outside),
                    .layers = each + (run < longer ? 1 : 0) - less,
                    .first = run == 0,
                    .last = run + 1 == runs,
                    .saved = {}});
  }
  return list;
}

Passes passes_of(config::PipelineSchedule schedule, const Pipeline& of, int stage) {
  const int all = of.micro_batches * of.chunks;
  int ahead = of.stages - stage - 1;
  if (schedule == config::PipelineSchedule::interleaved) ahead = 2 * ahead + (of.chunks - 1) * of.stages;
  if (schedule == config::PipelineSchedule::gpipe) ahead = all;
  ahead = std::min(ahead, all);
  // First `ahead` forward passes, then one forward and one backward in turn, then the remaining backward passes.
  Passes passes;
  for (int k = 0; k < all + ahead; ++k) {
    if (k < all) passes.push_back(numbered(of, Phase::forward, k));
    if (k >= ahead) passes.push_back(numbered(of, Phase::backward, k - ahead));
  }
  return passes;
}

program::Repetition repetition_of(config::PipelineSchedule schedule, const Pipeline& of, int stage) {
  if (schedule == config::PipelineSchedule::gpipe) return {stage, of.micro_batches, 1, of.micro_batches};
  if (schedule == config::PipelineSchedule::one_forward_one_backward)
    return {stage, of.stages, 1, of.stages + (of.stages - stage) + 2};
  return {stage, 2 * of.stages, of.stages, 5 * of.stages};  // interleaved: alternates from within the second turn on
}

Passes chunk_by_chunk(const Pipeline& of) {
  Passes passes;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    for (int k = 0; k < of.chunks; ++k) {
      const int chunk = phase == Phase::forward ? k : of.chunks - 1 - k;
      for (int m = 0; m < of.micro_batches; ++m) passes.push_back(pass_of(of, phase, m, chunk));
    }
  }
  return passes;
}

std::vector<std::vector<TimedPass>> timetable(const Pipeline& of, const std::vector<Passes>& of_stages) {
  // End ticks of passes, by run of layers, counted from 1, and micro-batch. There is no pass to wait for before the
  // first run and after the last one.
  constexpr int unknown = -2, none = -1;
  std::vector<std::vector<int>> forward(of.stages * of.chunks + 2, std::vector<int>(of.micro_batches, unknown));
  std::vector<std::vector<int>> backward = forward;
  forward.front() = backward.back() = std::vector<int>(of.micro_batches, none);
  std::vector<std::vector<TimedPass>> timed(of.stages);
  bool moved = true;
  while (moved) {
    moved = false;
    for (int stage = 0; stage < of.stages; ++stage) {
      std::vector<TimedPass>& done = timed[stage];
      while (done.size() < of_stages[stage].size()) {
        const Pass& pass = of_stages[stage][done.size()];
        const int run = pass.chunk * of.stages + stage + 1, m = pass.micro_batch;
        const int input = pass.forward() ? forward[run - 1][m] : backward[run + 1][m];
        if (input == unknown) break;
        const int begin = std::max(done.empty() ? 0 : done.back().end, input), end = begin + (pass.forward() ? 1 : 2);
        done.push_back({pass, begin, end, input});
        (pass.forward() ? forward : backward)[run][m] = end;
        moved = true;
      }
    }
  }
  for (int stage = 0; stage < of.stages; ++stage) {
    if (timed[stage].size() < of_stages[stage].size())
      fail("the passes of stage {} wait for one that never comes, after {} of {}", stage, timed[stage].size(),
           of_stages[stage].size());
  }
  return timed;
}

std::vector<std::vector<TimedPass>> timetable(config::PipelineSchedule schedule, const Pipeline& pipeline) {
  std::vector<Passes> of_stages;
  for (int stage = 0; stage < pipeline.stages; ++stage) of_stages.push_back(passes_of(schedule, pipeline, stage));
  return timetable(pipeline, of_stages);
}

}  // namespace harness::gpt
