#include "sweep/resume.h"

#include <algorithm>
#include <set>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "store/result_file.h"
#include "sweep/planned_result.h"

namespace harness::sweep {
namespace {

[[noreturn]] void refuse_resume(const std::string& path, int ranks, const std::string& why) {
  fail("{} cannot be resumed: {}. `{}` takes everything from the file; or name another with -o", path, why,
       resume_command(ranks, path));
}

bool has_open_verdict(const store::Result& result) {
  return std::ranges::any_of(analysis::summarise(result).cases, analysis::needs_rounds);
}

// Throws if `earlier` is not an unfinished sweep of what is planned, as far as that is known before any worker runs.
void refuse_unlike(const store::Result& earlier, const store::Result& planned, const std::string& path) {
  if (earlier.state == store::RunState::complete) {
    const std::string more =
        has_open_verdict(earlier)
            ? fmt::format("`--resume {} --rounds N` adds rounds to it, up to N; ", shell_word(path))
            : "";
    fail("{} is complete, so there is nothing to resume: {}-o names another file, --force puts a new one in its place",
         path, more);
  }
  require_same_ranks(earlier, planned.ranks, path);
  if (earlier.config_text != planned.config_text)
    refuse_resume(path, earlier.ranks, "its configuration differs from " + planned.config_path);
  if (earlier.overrides != planned.overrides) {
    refuse_resume(path, earlier.ranks,
                  fmt::format("it was made with other --set options: \"{}\" then, \"{}\" now",
                              fmt::join(earlier.overrides, " "), fmt::join(planned.overrides, " ")));
  }
  if (!std::ranges::equal(earlier.cases, planned.cases, {}, &store::ResultCase::name, &store::ResultCase::name))
    refuse_resume(path, earlier.ranks, "its cases are others (--only)");
}

}  // namespace

std::string resume_command(int ranks, const std::string& path) {
  return fmt::format("mpirun -np {} {} sweep --resume {}", ranks, called(), shell_word(path));
}

void require_same_ranks(const store::Result& earlier, int ranks, const std::string& path) {
  if (earlier.ranks == ranks) return;
  fail("{} was made on {}, but this job has {}: `{}` continues it", path, plural(earlier.ranks, "rank"), ranks,
       resume_command(earlier.ranks, path));
}

void require_resumable(const std::string& path, const store::Result& planned) {
  refuse_unlike(store::read_result(path, {.rank_seconds = false, .timeline = false}), planned, path);
}

void require_same_programs(const store::Result& earlier, const store::Result& planned, const std::string& path) {
  refuse_unlike(earlier, planned, path);
  const bool same = std::ranges::equal(earlier.cases, planned.cases, {}, &store::ResultCase::program_hash,
                                       &store::ResultCase::program_hash);
  if (!same) refuse_resume(path, earlier.ranks, "its programs differ from those of this build");
}

namespace {

[[noreturn]] void refuse_more_rounds(const std::string& path, const std::string& why) {
  fail("{} cannot have more rounds: {}", path, why);
}

void require_extensible(const std::string& path, const store::Result& result, const plan::Plan& plan, int rounds) {
  if (result.state != store::RunState::complete)
    refuse_more_rounds(path, fmt::format("it is not complete; `{}` continues it", resume_command(result.ranks, path)));
  const int declared = analysis::declared_rounds(result), over = analysis::rounds_over(result);
  if (rounds < declared || rounds <= over) {
    refuse_more_rounds(path, fmt::format("it declared {} and measured {}; --rounds names the new total, {} or more",
                                         declared, over, std::max(declared, over + 1)));
  }
  if (!std::ranges::equal(result.cases, plan.cases, {}, &store::ResultCase::name, &plan::PlannedCase::name))
    refuse_more_rounds(path, "its cases are not those that its configuration gives on these ranks");
  if (!has_open_verdict(result)) refuse_more_rounds(path, "no verdict in it is open, so they would settle nothing");
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
