#include "workloads/gpt/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace harness::gpt {
namespace {

using Kind = Pass::Kind;

// A schedule decides the order of the passes; which of them are the first and the last of a chunk follows from it.
Passes with_ends_marked(Passes passes) {
  std::map<int, Pass*> latest;  // by chunk
  for (Pass& pass : passes) {
    if (pass.kind == Kind::forward) continue;
    Pass*& before = latest[pass.chunk];
    pass.first = before == nullptr;
    before = &pass;
  }
  for (const auto& [chunk, pass] : latest) pass->last = true;
  return passes;
}

// The k-th pass of a stage in one direction: as many micro-batches as there are stages go through one chunk, then
// through the one that follows in this direction.
Pass numbered(const Pipeline& of, Kind kind, int k) {
  const int turn = of.stages * of.chunks, chunk = k % turn / of.stages;
  return {kind, k / turn * of.stages + k % of.stages, kind == Kind::forward ? chunk : of.chunks - 1 - chunk};
}

// `ahead` forward passes, then one forward and one backward in turn, then the backward passes that are left.
Passes alternating(const Pipeline& of, int ahead) {
  const int all = of.micro_batches * of.chunks;
  ahead = std::min(ahead, all);
  Passes passes;
  for (int k = 0; k < all + ahead; ++k) {
    if (k < all) passes.push_back(numbered(of, Kind::forward, k));
    if (k >= ahead) passes.push_back(numbered(of, Kind::backward, k - ahead));
  }
  return with_ends_marked(std::move(passes));
}

// When the passes of all stages end that another stage waits for, by the run of layers that they go through.
class Results {
 public:
  Results(int runs, int micro_batches)
      : runs_(runs), micro_batches_(micro_batches), ends_(std::size_t{2} * runs * micro_batches, unknown) {}

  static constexpr int unknown = -1, needs_none = -2;
  int input_of(const Pass& pass, int run) const {
    const int from = pass.kind == Kind::forward ? run - 1 : run + 1;
    return from < 0 || from >= runs_ ? needs_none : ends_[place(pass, from)];
  }
  void note(const Pass& pass, int run, int end) { ends_[place(pass, run)] = end; }

 private:
  std::size_t place(const Pass& pass, int run) const {
    const std::size_t direction = pass.kind == Kind::forward ? 0 : 1;
    return (direction * runs_ + run) * micro_batches_ + pass.micro_batch;
  }
  int runs_, micro_batches_;
  std::vector<int> ends_;
};

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
  const int stages_behind = of.stages - stage - 1;
  switch (schedule) {
    case config::PipelineSchedule::one_forward_one_backward:
      return alternating(of, stages_behind);
    case config::PipelineSchedule::gpipe:
      return alternating(of, of.micro_batches * of.chunks);
    case config::PipelineSchedule::interleaved:
      return alternating(of, 2 * stages_behind + (of.chunks - 1) * of.stages);
  }
  fail("there is no such pipeline schedule");
}

program::Repetition repetition_of(config::PipelineSchedule schedule, const Pipeline& of, int stage) {
  switch (schedule) {
    case config::PipelineSchedule::one_forward_one_backward:
      return {of.stages, 1, of.stages + (of.stages - stage) + 2};
    case config::PipelineSchedule::gpipe:
      return {of.micro_batches, 1, of.micro_batches};
    case config::PipelineSchedule::interleaved:  // begins to alternate within the second turn
      return {2 * of.stages, of.stages, 5 * of.stages};
  }
  fail("there is no such pipeline schedule");
}

Passes chunk_by_chunk(const Pipeline& of) {
  Passes passes;
  for (const Kind kind : {Kind::forward, Kind::backward}) {
    for (int k = 0; k < of.chunks; ++k) {
      const int chunk = kind == Kind::forward ? k : of.chunks - 1 - k;
      for (int m = 0; m < of.micro_batches; ++m) passes.push_back({kind, m, chunk});
    }
  }
  return with_ends_marked(std::move(passes));
}

std::vector<std::vector<TimedPass>> timetable(const std::vector<Passes>& of_stages) {
  const int stages = static_cast<int>(of_stages.size());
  int chunks = 0, micro_batches = 0;
  for (const Pass& pass : of_stages.front()) {
    chunks = std::max(chunks, pass.chunk + 1);
    micro_batches = std::max(micro_batches, pass.micro_batch + 1);
  }
  Results results(stages * chunks, micro_batches);
  std::vector<std::vector<TimedPass>> timed(stages);
  bool moved = true;
  while (moved) {
    moved = false;
    for (int stage = 0; stage < stages; ++stage) {
      std::vector<TimedPass>& done = timed[stage];
      while (done.size() < of_stages[stage].size()) {
        const Pass& pass = of_stages[stage][done.size()];
        const int run = pass.chunk * stages + stage, input = results.input_of(pass, run);
        if (input == Results::unknown) break;
        const int begin = std::max(done.empty() ? 0 : done.back().end, std::max(input, 0));
        const int ticks = pass.kind == Kind::backward ? 2 : 1;
        done.push_back({pass, begin, begin + ticks, input == Results::needs_none ? -1 : input});
        results.note(pass, run, done.back().end);
        moved = true;
      }
    }
  }
  for (int stage = 0; stage < stages; ++stage) {
    if (timed[stage].size() < of_stages[stage].size())
      fail("the passes of stage {} wait for one that never comes, after {} of {}", stage, timed[stage].size(),
           of_stages[stage].size());
  }
  return timed;
}

std::vector<std::vector<TimedPass>> timetable(config::PipelineSchedule schedule, const Pipeline& pipeline) {
  std::vector<Passes> of_stages;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    of_stages.push_back(passes_of(schedule, pipeline, stage));
  }
  return timetable(of_stages);
}

}  // namespace harness::gpt
