// Models with modern options against PyTorch: each option alone, and a small Llama with all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "selftest/checks.h"
#include "support/paths.h"
#include "support/soak.h"
#include "trained.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;
using Cell = std::array<int, 3>;  // tensor, pipeline, data

const std::vector<selftest::Reference>& references() {
  static const auto all = selftest::load_model_references(test::source_dir() + "/tests/reference");
  return all;
}

config::Settings settings_of(const selftest::Reference& reference, const Cell& cell) {
  config::Settings s = reference.settings;
  s.layout = {{program::Axis::tensor, cell[0]}, {program::Axis::pipeline, cell[1]}};
  s.micro_batch_size = 1;
  s.bucket_size_bytes = 4 << 10;
  return s;
}

// Compares queries, keys and values separately: in a common norm, the gradient of values hides the others.
void expect_near(const config::Model& m, const std::string& name, const std::vector<float>& ours,
                 std::span<const float> theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what << ", " << name;
  const bool qkv = name.find(".qkv.") != std::string::npos;
  const std::int64_t all = m.hidden + 2 * m.key_width(), row = static_cast<std::int64_t>(ours.size()) / all;
  std::vector<std::int64_t> ends{static_cast<std::int64_t>(ours.size())};
  if (qkv) ends = {m.hidden * row, (m.hidden + m.key_width()) * row, all * row};
  std::int64_t first = 0;
  for (const std::int64_t end : ends) {
    // The bias of keys shifts all scores of a row equally and has no gradient, unless rotary positions rotate it.
    const bool nothing = name.ends_with("qkv.bias") && first == m.hidden && m.positions == config::Positions::learned;
    const std::vector<float> a(ours.begin() + first, ours.begin() + end),
        b(theirs.begin() + first, theirs.begin() + end);
    if (!nothing) {
      EXPECT_LE(test::distance(a, b), 1e-5) << what << ", " << name << " from " << first;
    }
    first = end;
  }
}

void compare(const selftest::Reference& reference, const Cell& cell) {
  const std::string what = fmt::format("{}, TP{} PP{} DP{}", reference.model.name, cell[0], cell[1], cell[2]);
  const config::Settings settings = settings_of(reference, cell);
  const program::Layout layout = layout_of(cell[0], cell[1], cell[2]);
  LocalJob job(reference.model, settings, layout, reference.seed);
  job.run(1);
  const test::Gradients gradients = test::gathered_gradients(job, reference.model, settings, layout);
  ASSERT_EQ(gradients.size(), reference.places.size()) << what;
  for (const auto& [name, ours] : gradients) {
    expect_near(reference.model, name, ours, reference.tensor(name), what);
  }
  job.run(2);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(job.losses(0)[i] / reference.losses[i], 1, 1e-5) << what;
}

// Tests each model on one rank and in one other layout, and the Llama also on all axes; HARNESS_SOAK tests all layouts.
TEST(ReferenceOfModels, LossesAndEveryGradient) {
  std::size_t row = 0;
  for (const selftest::Reference& reference : references()) {
    std::vector<Cell> cells{{1, 1, 1}};
    constexpr std::array<Cell, 7> others{{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}};
    if (test::soaking()) {
      cells.insert(cells.end(), others.begin(), others.end());
    } else if (test::emulated) {
      cells = {row % 2 == 0 ? Cell{2, 1, 1} : Cell{1, 2, 1}};
    } else {
      cells.push_back(others.at(row % others.size()));
      if (reference.model.name == "llama") cells.push_back({2, 2, 2});
    }
    ++row;
    for (const Cell& cell : cells) compare(reference, cell);
  }
}

}  // namespace
}  // namespace harness
