#pragma once

#include <string>
#include <utility>
#include <vector>

#include "job/job.h"

namespace harness::test {

/// A fake job: nothing runs, no rank answers and nothing asks it to stop. Tests override the functions that they need.
class PlayedJob : public job::Job {
 public:
  explicit PlayedJob(std::vector<job::RankPlace> places = std::vector<job::RankPlace>(1))
      : places_(std::move(places)) {}

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(places_.size()); }
  const std::vector<job::RankPlace>& places() const override { return places_; }
  job::BlockOutcome run(const job::BlockOnSet& /*block*/) override { return {}; }
  std::vector<std::string> ask(const std::string& /*question*/) override { return {}; }
  int follow() override { return 0; }
  void finish(int /*exit_code*/) override {}
  void leave() override {}
  int stop_requests() const override { return 0; }
  double allocation_end_unix_s() const override { return 0; }
  const Clock& clock() const override { return system_clock(); }

  /// Tests may change the places.
  std::vector<job::RankPlace>& seats() { return places_; }

 private:
  std::vector<job::RankPlace> places_;
};

}  // namespace harness::test
