#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/facts.h"
#include "job/job.h"
#include "support/played_job.h"

namespace harness::test {

/// A job whose ranks answer as those of an MPI job do, one after the other.
class AnsweringJob : public PlayedJob {
 public:
  AnsweringJob(int nodes, int ranks_per_node) : PlayedJob(std::vector<job::RankPlace>()) {
    for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
      job::RankPlace place;
      place.rank = rank;
      place.local_rank = rank % ranks_per_node;
      place.local_ranks = ranks_per_node;
      place.node = rank / ranks_per_node;
      place.host = fmt::format("host{}", place.node);
      seats().push_back(place);
    }
  }
  std::vector<std::string> ask(const std::string& question) override {
    std::vector<std::string> answers;
    for (const job::RankPlace& place : places()) {
      answers.push_back(place.rank == silent ? "" : doctor::answer(place.rank, question));
    }
    return answers;
  }

  int silent = -1;  // this rank gives no answer
};

}  // namespace harness::test
