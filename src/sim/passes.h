#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/timeline.h"
#include "sim/critical_path.h"
#include "sim/engine.h"
#include "sim/rank_classes.h"

namespace harness::sim {

/// Where the time of a pass goes.
struct PassShares {
  double computing = 1, exposed = 0, overlapped = 0;  // as in program::StepSplit
  CriticalPath path;                                  // through the pass by itself
};

/// The costs of operations that stand for passes, from the operations of those passes: a pass is simulated by itself,
/// once with its input late, and behind each pass that it follows. Ranks that share a layer must be one class.
class PassCosts {
 public:
  /// `sample` and `folded`: the classes of the two sets of a FoldedStep, lowered, which must outlive the object;
  /// `cost`: of the operations of the sample. Throws Error if they are not divided alike.
  PassCosts(const RankClasses& sample, const RankClasses& folded, const CostOf& cost);

  /// The cost of an operation of the folded set for which is_folded() holds.
  Cost operator()(int rank_class, program::OperationId id);
  const PassShares& shares(int rank_class, program::OperationId id) const;

 private:
  using Key = std::pair<program::Phase, int>;  // the direction and the chunk
  // An operation of a pass; it waits for others of the pass, by their numbers in it.
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
    std::map<const Pass*, Ticks> behind = {};  // another pass, from its end on; nullptr: none
  };
  class Alone;

  void list_passes(int rank_class, const CostOf& cost);
  // Equal passes are one.
  Pass* shared(std::vector<Member> members);
  void measure(Pass& pass) const;
  Ticks behind(Pass& pass, const Pass* before) const;
  Pass& pass_of(int rank_class, const program::Operation& folded) const;
  const Pass* pass_before(int rank_class, const program::Operation& before, const program::Operation& folded) const;

  const RankClasses &sample_, &folded_;
  std::vector<std::map<Key, Pass*>> passes_;  // by class
  std::vector<std::unique_ptr<Pass>> distinct_;
};

}  // namespace harness::sim
