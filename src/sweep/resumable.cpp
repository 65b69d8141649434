#include "sweep/resumable.h"

#include <algorithm>

#include "base/error.h"
#include "base/identity.h"
#include "base/text.h"
#include "store/result_file.h"

namespace harness::sweep {
namespace {

[[noreturn]] void refuse_resume(const std::string& path, int ranks, const std::string& why) {
  fail("{} cannot be resumed: {}. `{}` takes everything from the file; or name another with -o", path, why,
       resume_command(ranks, path));
}

// Throws if `earlier` is not an unfinished sweep of what is planned, as far as that is known before any worker runs.
void refuse_unlike(const store::Result& earlier, const store::Result& planned, const std::string& path) {
  if (earlier.state == store::RunState::complete) {
    fail(
        "{} is complete, so there is nothing to resume: `--resume {} --rounds N` adds rounds to it, up to N; -o names "
        "another file, --force puts a new one in its place",
        path, shell_word(path));
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

}  // namespace harness::sweep
