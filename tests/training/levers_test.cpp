// Tests in pairs the registry's rows that claim not to change the mathematics. A new row is included automatically.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/row_values.h"
#include "support/soak.h"
#include "trained.h"

namespace harness::lever_pairs {
namespace {

using config::Mathematics;
using config::Variable;

const config::Model four_layers{"tiny", 4, 64, 4, 128, 32};

struct Lever {
  const Variable* row;
  std::string value;
  std::string text() const { return row->name + ": " + value; }
};

const std::string_view tested = config::name_of(test::tested_backend);

// Settings of the loader alone are not part of the Program; tests/data has them.
bool is_lever(const Variable& row) {
  return row.acts_on != std::vector{Part::loading} && !row.fixed && !row.free_parts &&
         row.purpose == config::Purpose::setting && row.mathematics != Mathematics::another &&
         row.honoured_on(tested, tested) && row.honoured_by(config::training_workload);
}

const std::vector<Lever>& levers() {
  static const std::vector<Lever> all = [] {
    std::vector<Lever> found;
    for (const Variable& row : config::registry()) {
      if (!is_lever(row)) continue;
      for (const std::string& value : test::values_of(row)) found.push_back({&row, value});
    }
    return found;
  }();
  return all;
}

// The job that tests a pair: ranks in `layout`, two on each node, with further levers at random.
struct Trial {
  config::Settings settings;
  program::Layout layout;
  std::vector<std::string> changed;
  bool rounded = false;

  void set(const Lever& lever) {
    lever.row->parse(settings, lever.value);
    changed.push_back(lever.text());
    rounded = rounded || lever.row->mathematics == Mathematics::rounded;
  }
  std::string text() const { return "{" + join(changed, ", ") + "}"; }
};

bool has_effect(const Variable& row, config::Settings settings, const program::Layout& layout) {
  settings.ranks = layout.ranks();
  settings.layout.replicas_of_node = layout.replicas_of_node;
  return row.without_effect(settings).empty();
}

bool is_possible(Trial& trial, int ranks) {
  for (const Variable& row : config::registry()) {
    if (row.honoured_on(tested, tested) && !row.refused_by(trial.settings, test::tested_backend).empty()) return false;
  }
  if (!plan::why_impossible(trial.settings, std::nullopt).empty()) return false;
  const plan::Division division =
      plan::divide_ranks(four_layers, trial.settings, ranks, machine::Topology::node_by_node(ranks, 2));
  trial.layout = division.layout;
  return division.why_impossible.empty();
}

// Returns settings in which both levers have an effect, found by adding random other levers. Deterministic.
std::optional<Trial> trial_of(const Lever& a, const Lever& b) {
  std::mt19937_64 random(fnv1a(a.text() + " " + b.text()));
  for (int attempt = 0; attempt < 300; ++attempt) {
    Trial trial;
    for (const Lever& other : levers()) {
      const bool beside = other.row != a.row && other.row != b.row && random() % 20 == 0;
      if (beside && attempt > 0) trial.set(other);
    }
    trial.set(a);
    trial.set(b);
    if (!is_possible(trial, random() % 2 == 0 ? 4 : 8)) continue;
    if (has_effect(*a.row, trial.settings, trial.layout) && has_effect(*b.row, trial.settings, trial.layout))
      return trial;
  }
  return std::nullopt;
}

TEST(Levers, ThatLeaveTheMathematicsAloneTrainAsOneRankInPairs) {
  std::map<std::string, int> pairs_of;
  for (std::size_t i = 0; i < levers().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Lever &a = levers()[j], &b = levers()[i];
      if (a.row == b.row || !test::drawn(a.text() + " " + b.text(), 30)) continue;
      const std::optional<Trial> trial = trial_of(a, b);
      if (!trial) continue;
      SCOPED_TRACE(a.text() + " and " + b.text());
      test::Nearness near;
      if (trial->rounded) near = {1e-2, 1e-2, 0.1};
      if (config::has_fp8_products(trial->settings.precision)) near = {1e-2, 2e-2, 0.28};  // docs/method.md
      test::expect_trains_as_one_rank(four_layers, trial->settings, trial->layout, trial->text(), near);
      ++pairs_of[a.row->name];
      ++pairs_of[b.row->name];
    }
  }
  for (const Variable& row : config::registry()) {
    if (!is_lever(row)) continue;
    EXPECT_FALSE(test::values_of(row).empty()) << row.name << " takes no value that row_values.h offers: add one";
    EXPECT_TRUE(!test::soaking() || pairs_of[row.name] > 0) << row.name << " was never tried";
  }
}

}  // namespace
}  // namespace harness::lever_pairs
