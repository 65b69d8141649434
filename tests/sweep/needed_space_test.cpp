// What is allocated before the preparation holds the result, and is not much more.
#include "sweep/needed_space.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backend/backend.h"
#include "config/recorded.h"
#include "plan/prepare.h"
#include "store/result_file.h"
#include "support/paths.h"

namespace harness::sweep {
namespace {

TEST(NeededSpace, HoldsTheExampleAndLittleMore) {
  const std::string path = test::source_dir() + "/results/example.h5";
  const store::Result example = store::read_result(path, {.rank_seconds = false, .timeline = false});
  config::Experiment experiment = config::load_recorded(example.config_text, example.config_path, example.overrides);
  std::vector<std::string> only;
  for (const store::ResultCase& row : example.cases) only.push_back(row.name);
  const auto needed = [&] {
    return needed_space(plan::prepare(experiment, backend::declared_fused(experiment.backend), example.ranks, only));
  };
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  experiment.measure.auto_steps = false;
  experiment.measure.steps = example.steps;
  const std::int64_t as_it_was = needed();
  EXPECT_GE(as_it_was, bytes);
  EXPECT_LE(as_it_was, 8 * bytes);
  experiment.measure.auto_steps = true;  // as many as it may choose
  EXPECT_GE(needed() - as_it_was, (1000 - example.steps) * static_cast<std::int64_t>(example.blocks.size()) * 4 * 4);
}

}  // namespace
}  // namespace harness::sweep
