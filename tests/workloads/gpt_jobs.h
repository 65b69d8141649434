#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "program/count.h"
#include "program/expand.h"
#include "program/verify.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness::workloads {

/// What a training step is built from.
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

inline std::string texts(const std::vector<program::Problem>& problems) {
  std::string all;
  for (const auto& p : problems) all += p.text + "\n";
  return all;
}

/// What a step of a role sends to a destination (program::destination) by operations of this name.
inline program::Traffic traffic_of(const program::ProgramSet& set, int role, const std::string& destination,
                                   const std::string& kind) {
  const auto traffic = program::count(set, set.roles[role], set.roles[role].step).traffic;
  const auto it = traffic.find({destination, kind});
  return it == traffic.end() ? program::Traffic{} : it->second;
}

/// Drops one wait after the other of a role's step, of those that `wanted(operation, awaited)` names, and expects that
/// verify() refuses each. Returns how many there are.
template <class Wanted>
int needed_waits(const program::ProgramSet& sound, int role, const Wanted& wanted) {
  const auto& step = sound.roles.at(role).step;
  int waits = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    for (const program::OperationId awaited : step[i].waits) {
      if (!wanted(step[i], step[awaited])) continue;
      auto set = sound;
      std::erase(set.roles[role].step[i].waits, awaited);
      EXPECT_THAT(texts(program::verify(set)), ::testing::HasSubstr("a wait is missing"))
          << program::title(step[i]) << " without " << program::title(step[awaited]);
      ++waits;
    }
  }
  return waits;
}

}  // namespace harness::workloads
