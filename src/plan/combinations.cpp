#include "plan/plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "config/experiment.h"

namespace harness::plan {
namespace {

bool can_be_better(const config::Variable& variable) {
  return variable.purpose == config::Purpose::setting && variable.mathematics != config::Mathematics::another;
}

}  // namespace

Combinations::Combinations(const Plan& plan) : plan_(plan) {
  std::vector<Values> of_environment;
  for (const config::Variable& variable : config::registry()) {
    Values found{&variable, {variable.print(plan.baseline().settings)}};
    for (const PlannedCase& planned : plan.cases) {
      std::string value = variable.print(planned.settings);
      if (std::ranges::find(found.values, value) == found.values.end()) found.values.push_back(std::move(value));
    }
    if (found.values.size() == 1) continue;
    if (!can_be_better(variable)) {
      left_out_.push_back(variable.name);
    } else {
      (variable.environment_name.empty() ? variables_ : of_environment).push_back(std::move(found));
    }
  }
  std::ranges::move(of_environment, std::back_inserter(variables_));
}

double Combinations::count() const {
  double count = 1;
  for (const Values& v : variables_) count *= static_cast<double>(v.values.size());
  return count;
}

bool Combinations::next(Choice& choice) const {
  for (std::size_t i = choice.size(); i-- > 0;) {
    if (++choice[i] < variables_[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

PlannedCase Combinations::planned(const Choice& choice) const {
  config::Change change{std::string(config::combination), "", plan_.baseline().settings, ""};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] == 0) continue;
    const config::Variable& variable = *variables_[i].variable;
    const std::string& value = variables_[i].values[choice[i]];
    variable.parse(change.settings, value);
    parts.push_back(fmt::format("{}={}", variable.name, value));
  }
  change.value = parts.empty() ? plan_.baseline().name : join(parts, " + ");
  return case_of(plan_, change);
}

}  // namespace harness::plan
