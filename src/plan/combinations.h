#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/registry.h"
#include "plan/plan.h"

namespace harness::plan {

/// A variable and the values that cases give to it, as printed; the baseline's first.
struct Values {
  const config::Variable* variable = nullptr;
  std::vector<std::string> values;
};

/// One value of each variable, by its place in Values::values: 0 is the baseline's.
using Choice = std::vector<std::size_t>;

/// All combinations of the values that the cases of a plan give to variables, alone, in a `combine` or in a fix of a
/// `ladder`. A variable of which no value can be better keeps the baseline's: how many ranks there are, sizes of one
/// operation, and what makes it another training. Pure.
class Combinations {
 public:
  /// `plan` must outlive it.
  explicit Combinations(const Plan& plan);

  /// The ones that change the Program come first, so that neighbours in the order of next() have it in common.
  const std::vector<Values>& variables() const { return variables_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  /// How many there are, the baseline among them, as far as a double counts.
  double count() const;

  Choice first() const { return Choice(variables_.size(), 0); }
  /// The next one in a fixed order; false after the last.
  bool next(Choice& choice) const;

  /// Its case, which may be impossible, as case_of() makes it. Where it is alike, a value that it sets has no effect
  /// among the others, so its step is that of another combination, without it.
  PlannedCase planned(const Choice& choice) const;

 private:
  const Plan& plan_;
  std::vector<Values> variables_;
  std::vector<std::string> left_out_;
};

}  // namespace harness::plan
