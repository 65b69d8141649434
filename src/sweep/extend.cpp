#include "sweep/extend.h"

#include <algorithm>
#include <set>

#include "analysis/looks.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "store/result_file.h"
#include "sweep/planned_result.h"
#include "sweep/resumable.h"

namespace harness::sweep {
namespace {

[[noreturn]] void refuse_more_rounds(const std::string& path, const std::string& why) {
  fail("{} cannot have more rounds: {}", path, why);
}

void require_extensible(const std::string& path, const store::Result& result, const plan::Plan& plan, int rounds) {
  if (result.state != store::RunState::complete)
    refuse_more_rounds(path, fmt::format("it is not complete; `{}` continues it", resume_command(result.ranks, path)));
  if (!result.ladder.empty())
    refuse_more_rounds(path, "its ladder measures all of its cases in all rounds; measure again with more of them");
  const int declared = analysis::declared_rounds(result), over = analysis::rounds_over(result);
  if (rounds < declared || rounds <= over) {
    refuse_more_rounds(path, fmt::format("it declared {} and measured {}; --rounds names the new total, {} or more",
                                         declared, over, std::max(declared, over + 1)));
  }
  if (!std::ranges::equal(result.cases, plan.cases, {}, &store::ResultCase::name, &plan::PlannedCase::name))
    refuse_more_rounds(path, "its cases are not those that its configuration gives on these ranks");
  if (std::ranges::none_of(analysis::summarise(result).cases, analysis::is_unresolved))
    refuse_more_rounds(path, "the verdict on no change in it is unresolved");
}

}  // namespace

void extend_file(const std::string& path, const plan::Plan& plan, int rounds) {
  store::Result result = store::read_result(path);
  require_extensible(path, result, plan, rounds);
  const int declared = analysis::declared_rounds(result), over = analysis::rounds_over(result);
  std::set<int> looks{over, rounds};
  for (const int look : analysis::declared_looks(result)) looks.insert(look);
  if (rounds > declared) result.extended += fmt::format("{}{}", result.extended.empty() ? "" : ",", declared);
  result.looks = fmt::format("{}", fmt::join(looks, ","));
  result.rounds = rounds;
  result.state = store::RunState::partial;

  const auto kept = static_cast<std::size_t>(
      std::ranges::count_if(result.blocks, [&](const store::ResultBlock& block) { return block.round < over; }));
  result.blocks.resize(kept);
  result.step_seconds.resize(kept);
  result.losses.resize(kept);
  result.rank_seconds.resize(kept);
  for (const plan::Slot& slot : plan.schedule) {
    if (slot.round < over) continue;
    result.blocks.push_back(pending_block(slot));
  }
  store::rewrite_result(path, result);
}

}  // namespace harness::sweep
