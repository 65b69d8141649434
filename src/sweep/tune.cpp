#include "sweep/tune.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "backend/backend.h"
#include "base/error.h"

namespace harness::sweep {
namespace {

namespace fs = std::filesystem;

std::string word_of(const std::string& text) {
  std::string word;
  for (const char c : text) word += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '-';
  return word;
}

fs::path folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "harness";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "harness";
  return {};
}

}  // namespace

TuningCache::TuningCache(const std::string& device, const std::string& libraries) {
  const fs::path in = folder();
  if (in.empty() || device.empty() || libraries.empty()) return;
  path_ = (in / fmt::format("{}-{}.txt", word_of(device), word_of(libraries))).string();
}

backend::Tuning TuningCache::read() const {
  return path_.empty() ? backend::Tuning{} : backend::read_tuning(path_);
}

std::string TuningCache::write(const backend::Tuning& tuning) const {
  return path_.empty() ? "" : backend::write_tuning(path_, tuning);
}

namespace {

constexpr double tuning_limit_s = 900;  // for one case

// Adds the choices of all ranks and returns the number of new ones. Where several ranks timed the same product, the
// choice of the lowest rank is used by all.
std::size_t keep_new_choices(backend::Tuning& known, const std::vector<job::Samples>& samples) {
  const std::size_t before = known.size();
  for (const job::Samples& s : samples) {
    const NameValues& found = std::get<job::TuneSamples>(s.task).tuning;
    known.insert(found.begin(), found.end());
  }
  return known.size() - before;
}

}  // namespace

TuningOutcome tune(job::Job& job, const plan::Plan& plan, const Machine& machine, ProgressLine& progress) {
  const config::Experiment& e = plan.experiment;
  // Several ranks on one device would time each other.
  if (!config::traits_of(e.backend).tunes || e.measure.share_gpus) return {};
  const TuningCache cache(machine.device, fmt::format("cublaslt-{}", value_of(machine.identity, "cublaslt")));
  backend::Tuning known = cache.read();
  const std::size_t remembered = known.size();
  TuningOutcome result;
  progress.start_phase("tuning", plan.cases.size());
  for (const plan::PlannedCase& planned : plan.cases) {
    if (result.interrupted) break;
    progress.begin("tuning for " + planned.name);
    if (!planned.is_possible() || planned.is_copy) {
      progress.skip();
      continue;
    }
    job::BlockRequest request = block_request(e, planned, job::Tune{}, {{known.begin(), known.end()}, ""});
    request.deadlines.step_s = std::max(request.deadlines.step_s, tuning_limit_s);
    const job::BlockOutcome outcome = run_untimed(job, request);
    result.interrupted = stop_wanted(job, outcome);
    const std::size_t found = keep_new_choices(known, outcome.samples);
    progress.end(outcome.ok ? fmt::format("{} new choices", found) : "failed: " + outcome.reason);
    if (outcome.ok || outcome.stopped) continue;
    result.warnings.push_back("a case was not tuned and uses the library's first choice: " + outcome.reason);
  }
  result.tuning.assign(known.begin(), known.end());
  if (known.size() > remembered) {
    if (std::string problem = cache.write(known); !problem.empty()) result.warnings.push_back(std::move(problem));
  }
  return result;
}

}  // namespace harness::sweep
