#pragma once

#include <random>

#include "store/result.h"

namespace harness::test::samples {

/// Returns a case with a peak and one finished block, and a random timeline of its `stages` roles: any operations of
/// any kind on any stream, overlapping arbitrarily. Everything else that a file may hold is left out at random.
inline store::Result random_timeline(std::uint64_t seed, int stages, int ranks_of_stage) {
  std::mt19937_64 random(seed);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  const auto pick = [&](int n) { return static_cast<std::size_t>(std::uniform_int_distribution<>(0, n - 1)(random)); };
  store::Result r;
  r.ranks = stages * ranks_of_stage;
  r.steps = 1;
  r.backend = "cuda";
  r.memory_bytes_per_s = pick(2) == 0 ? 0 : 1e9;
  store::ResultCase subject;
  subject.name = "baseline";
  subject.status = store::CaseStatus::ok;
  subject.ranks = r.ranks;
  subject.layout[program::Axis::pipeline] = stages;
  subject.layout[program::Axis::tensor] = ranks_of_stage % 2 == 0 ? 2 : 1;
  subject.layout[program::Axis::data] = ranks_of_stage / subject.layout[program::Axis::tensor];
  subject.tokens_per_step = 100;
  subject.model_flop_per_step = real(1e8, 1e9);
  subject.noncausal_flop_per_step = subject.model_flop_per_step * real(1, 1.4);
  subject.hardware_flop_per_step = subject.model_flop_per_step * real(1, 1.3);
  subject.peak_flops_per_rank = real(1e8, 1e10);
  r.cases.push_back(subject);
  store::ResultBlock block;
  block.status = store::BlockStatus::ok;
  r.blocks.push_back(block);
  r.step_seconds.push_back({static_cast<float>(real(0.1, 2))});
  r.losses.push_back({1.0f});
  static const char* const kinds[] = {"matmul", "attention", "attention_backward", "layer_norm", "adamw"};
  static const char* const streams[] = {"tensor", "pipeline", "data", "world", "unheard of"};
  static const char* const phases[] = {"forward", "backward", "optimizer"};
  for (int stage = 0; stage < stages; ++stage) {
    for (const char* group : {"tensor", "pipeline", "data"}) {
      store::ResultOperations row;
      row.role = stage;
      row.group = group;
      row.kind = row.group == "pipeline" ? "receive" : "all_reduce";
      row.operations = 1;
      row.limit_s = pick(2) == 0 ? 0 : real(0, 0.1);
      r.operations.push_back(row);
    }
    const int first = stage * ranks_of_stage;
    double end = 0;
    for (int i = 0; i < 60; ++i) {
      store::ResultInterval x;
      x.role = stage;
      x.rank = first;
      x.operation = i;
      const bool communicates = pick(3) == 0;
      x.stream = communicates ? streams[pick(5)] : "compute";
      x.kind = kinds[pick(5)];
      if (communicates) x.kind = x.stream == "pipeline" ? "receive" : "all_reduce";
      if (communicates && x.stream == "data" && pick(2) == 0) x.what = "tied embedding";
      x.phase = phases[pick(3)];
      x.recomputed = !communicates && pick(10) == 0;
      x.start_s = real(0, 0.9);
      x.end_s = x.start_s + real(0, 0.05);
      end = std::max(end, x.end_s);
      // As measured or as damaged: any part of the interval, or more than the interval.
      if (communicates && seed % 2 == 0) {
        x.waiting_s = real(0, 0.05);
        x.bubble_s = real(0, 0.05);
      }
      r.timeline.push_back(x);
    }
    for (int rank = first; rank < first + ranks_of_stage; ++rank) {
      if (seed % 3 != 0) {
        store::ResultSplit split;
        split.rank = rank;
        split.step_s = end + (pick(2) == 0 ? 0 : real(0, 0.1));
        if (pick(2) == 0) split.loading_s = real(0, 0.1);
        if (seed % 5 < 3) {  // else the parts are unknown
          const double a = real(0, 1), b = real(0, 1);
          split.compute_s = split.step_s * std::min(a, b);
          split.exposed_s = split.step_s * std::abs(a - b);
          split.idle_s = split.step_s - split.compute_s - split.exposed_s;
          split.overlapped_s = split.compute_s * real(0, 1);
          split.communication_s = split.exposed_s + split.overlapped_s;
          if (seed % 2 == 0) split.waiting_s = split.communication_s * real(0, 1);
          if (seed % 2 == 0) split.bubble_s = (split.communication_s - split.waiting_s) * real(0, 1);
        }
        r.splits.push_back(split);
      }
    }
  }
  return r;
}

}  // namespace harness::test::samples
