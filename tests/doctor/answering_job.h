#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/examine.h"
#include "job/job.h"

namespace harness::test {

/// A job whose ranks answer as those of an MPI job do, one after the other.
class AnsweringJob : public job::Job {
 public:
  AnsweringJob(int nodes, int ranks_per_node) {
    for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
      job::RankPlace place;
      place.rank = rank;
      place.local_rank = rank % ranks_per_node;
      place.local_ranks = ranks_per_node;
      place.node = rank / ranks_per_node;
      place.host = fmt::format("host{}", place.node);
      places_.push_back(place);
    }
  }
  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(places_.size()); }
  const std::vector<job::RankPlace>& places() const override { return places_; }
  std::vector<job::BlockOutcome> run(const std::vector<job::BlockOnSet>&) override { return {}; }
  std::vector<std::string> ask(const std::string& question) override {
    std::vector<std::string> answers;
    for (const job::RankPlace& place : places_) {
      answers.push_back(place.rank == silent ? "" : doctor::answer(place.rank, question));
      bytes += answers.back().size();
    }
    return answers;
  }
  int follow() override { return 0; }
  void finish(int) override {}
  void leave() override {}
  int stop_requests() const override { return 0; }
  double allocation_end_unix_s() const override { return 0; }
  const Clock& clock() const override { return system_clock(); }

  /// For a test to change.
  std::vector<job::RankPlace>& seats() { return places_; }

  int silent = -1;        // this rank gives no answer
  std::size_t bytes = 0;  // of all answers

 private:
  std::vector<job::RankPlace> places_;
};

}  // namespace harness::test
