#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "config/experiment.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/critical_path.h"
#include "sim/engine.h"
#include "sim/link_time.h"
#include "sim/rank_classes.h"

namespace harness::sim {

/// Returns the links between ranks on these nodes, from the experiment's `fabric` where it states them, else from its
/// hardware. Throws Error if the experiment names no hardware.
Network network_of(const config::Experiment& experiment, std::vector<int> node_of);

/// How the time of a pass is spent.
struct PassShares {
  double computing = 1, exposed = 0, overlapped = 0;  // as in program::StepSplit
  CriticalPath path;                                  // through the pass by itself
};

/// The costs of operations that stand for passes, from the operations of those passes. Each pass is simulated by
/// itself, once with its input late, and behind each pass that it follows. Ranks that share a layer must be one class.
class PassCosts {
 public:
  /// `sample` and `folded`: the classes of the two sets of a lowered FoldedStep, which must outlive the object. `cost`:
  /// of the operations of the sample. Throws Error if the two have different classes.
  PassCosts(const RankClasses& sample, const RankClasses& folded, const CostOf& cost);

  /// Returns the cost of an operation of the folded set that is_folded().
  Cost operator()(int rank_class, program::OperationId id);
  const PassShares& shares(int rank_class, program::OperationId id) const;

 private:
  using Key = std::pair<program::Phase, int>;  // the direction and the chunk
  // An operation of a pass; `waits` index other operations of that pass.
  struct Member {
    const program::Operation* operation = nullptr;
    Cost cost;
    std::vector<program::OperationId> waits = {};
    bool takes_input = false;
  };
  struct Pass {
    std::vector<Member> members;
    Ticks from_input = 0;
    PassShares shares = {};
    std::map<const Pass*, Ticks> behind = {};  // time from the end of another pass on; nullptr: of none
  };
  class Alone;

  void list_passes(int rank_class, const CostOf& cost);
  // Returns the one pass that equals these members.
  Pass* shared(std::vector<Member> members);
  void measure(Pass& pass) const;
  Ticks behind(Pass& pass, const Pass* before) const;
  Pass& pass_of(int rank_class, const program::Operation& folded) const;

  const RankClasses &sample_, &folded_;
  std::vector<std::map<Key, Pass*>> passes_;  // by class
  std::vector<std::unique_ptr<Pass>> distinct_;
};

/// The factor on the cost of an operation of these Programs, equal for all members of a communication. Empty: 1.
using Slowdown = std::function<double(const program::ProgramSet& set, const program::Operation& operation)>;

/// A predicted step.
struct Prediction {
  double step_s = 0;
  program::StepSplit split;          // mean over the ranks
  double largest_message_bytes = 0;  // the largest collective; 0: none
  CriticalPath critical_path;        // as long as the step
};

/// One simulated step of a job. It takes the place of a measured step wherever one is analysed.
class Simulation {
 public:
  /// `programs`: not yet lowered. `network`: of at least the job's ranks, without the experiment's faults; those that
  /// the settings do not mend are added here. Throws Error if the hardware or the network lacks a number that the step
  /// needs, or has nothing that a fault refers to; throws NotPredicted for settings with which the step would not run.
  Simulation(program::ProgramSet programs, const config::Settings& settings, const config::Experiment& experiment,
             const Network& network, const Slowdown& slowdown = {});
  /// Simulates a step that can_fold(): each distinct pass once, then the step with one operation per pass. Its length
  /// is exact to 1e-9 if no ranks share a layer, else to 0.2 %.
  Simulation(program::FoldedStep step, const config::Settings& settings, const config::Experiment& experiment,
             const Network& network);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() = default;

  const program::ProgramSet& set() const { return set_; }  // lowered; of a folded step, with passes folded
  const RankClasses& classes() const { return classes_; }
  /// Includes what the software adds to every step, and loading_s().
  double step_s() const { return step_s_; }
  /// Time spent waiting for data before the first operation: data::Loading::exposed_s() of the step without it.
  double loading_s() const { return loading_s_; }
  /// Returns the intervals of a class, as intervals_of() (sim/critical_path.h) does.
  std::vector<program::Interval> intervals(int rank_class) const;
  /// Returns how the ranks of a class spend the step.
  program::StepSplit split(int rank_class) const;
  Prediction prediction() const;

 private:
  void run(const CostOf& cost, const config::Experiment& experiment, const config::Settings& settings);

  program::ProgramSet set_;
  program::ProgramSet sample_;  // for a folded step
  Network network_;             // as the faults leave it
  Condition condition_;         // by rank
  RankClasses classes_;
  std::optional<RankClasses> sample_classes_;
  std::optional<PassCosts> passes_;  // for a folded step
  SimulatedStep step_;
  std::vector<std::vector<Held>> held_;  // by class
  CriticalPath critical_path_;
  double step_s_ = 0, loading_s_ = 0, largest_message_bytes_ = 0;
};

/// Whether a step may be predicted with its passes folded: the hardware has no faults, host time is zero or part of the
/// passes (host_paces()), and ranks that share a layer do the same at the same times.
bool can_fold(const program::FoldedStep& step, const config::Settings& settings, const config::Experiment& experiment,
              const Network& network);

}  // namespace harness::sim
