#include "job/mpi/mpi_job.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>
#include <variant>

#include "base/text.h"
#include "job/job.h"
#include "job/messages.h"
#include "job/mpi/block_run.h"
#include "job/mpi/node.h"
#include "job/mpi/ranks.h"

namespace harness::mpi {

namespace {

class MpiJob final : public job::Job {
 public:
  MpiJob(std::unique_ptr<Ranks> ranks, double seconds_until_sigkill, job::Answer answer)
      : ranks_(std::move(ranks)), alarms_(*ranks_, seconds_until_sigkill), answer_(std::move(answer)) {
    job::count_stop_signals();
    site_ = find_site(*ranks_);
    places_ = gather_places(*ranks_, site_);
    if (ranks_->rank() == 0) environment_ = job::recorded_environment(job::own_environment());
  }

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  const std::vector<job::RankPlace>& places() const override { return places_; }

  job::BlockOutcome run(const job::BlockOnSet& block) override {
    ++block_;
    tell_all(job::RunBlock{block_, environment_, block});
    return run_here(block, environment_);
  }

  std::vector<std::string> ask(const std::string& question) override {
    tell_all(job::AnswerQuestion{question});
    return gather_answers(question);
  }

  int follow() override {
    for (;;) {
      std::string message;
      ranks_->broadcast(message, idle_);
      const auto order = job::decode<job::JobOrder>(message);
      if (const auto* run = std::get_if<job::RunBlock>(&order)) {
        block_ = run->block;
        run_here(run->on, run->environment);
      } else if (const auto* ask = std::get_if<job::AnswerQuestion>(&order)) {
        gather_answers(ask->question);
      } else {
        end_workers_but(nothing);
        return std::get<job::FinishJob>(order).exit_code;
      }
    }
  }

  void finish(int exit_code) override {
    tell_all(job::FinishJob{exit_code});
    end_workers_but(nothing);
  }

  void leave() override {
    alarms_.close();
    ranks_->finish();
  }

  void abandon(int exit_code) override { ranks_->abandon(exit_code); }

  int stop_requests() const override {
    alarms_.look();
    return alarms_.stop_level();
  }

  const Clock& clock() const override { return system_clock(); }

  double allocation_end_unix_s() const override {
    const auto text = own_environment("SLURM_JOB_END_TIME");
    return static_cast<double>(number_in<std::int64_t>(text.value_or("")).value_or(0));
  }

 private:
  static constexpr int nothing = -2;  // no set's number

  void tell_all(const job::JobOrder& order) {
    std::string message = job::encode(order);
    ranks_->broadcast(message, idle_);
  }
  std::vector<std::string> gather_answers(const std::string& question) {
    return ranks_->gather(answer_ ? answer_(rank(), question) : "", idle_);
  }
  job::BlockOutcome run_here(const job::BlockOnSet& block, const NameValues& environment) {
    end_workers_but(block.set.number);
    const Members members(block.set.ranks, block.request.layout.ranks());
    alarms_.begin_block(block_);
    BlockRun run(*ranks_, alarms_, site_, members, workers_[block.set.number], block, environment);
    job::BlockOutcome outcome = run.run();
    alarms_.end_block();
    if (!workers_[block.set.number]) workers_.erase(block.set.number);
    return outcome;
  }
  // Ends the workers of sets whose last block never came: a waiting worker would hold memory that the next set needs.
  void end_workers_but(int set) {
    std::erase_if(workers_, [&](const auto& entry) {
      if (entry.first == set) return false;
      if (entry.second) {
        entry.second->kill();
        entry.second->reap(5.0);
      }
      return true;
    });
  }

  std::unique_ptr<Ranks> ranks_;
  mutable Alarms alarms_;  // look() changes nothing that a caller can see
  job::Answer answer_;
  Site site_;
  std::vector<job::RankPlace> places_;
  std::map<int, std::unique_ptr<WorkerProcess>> workers_;  // on this rank, by the number of their set
  NameValues environment_;                                 // rank 0's recorded environment
  std::int64_t block_ = 0;
  Ranks::Idle idle_ = [this] { alarms_.look(); };
};

std::optional<int> integer(const std::optional<std::string>& text) {
  return text ? number_in<int>(*text) : std::nullopt;
}

struct Names {
  const char* size;
  const char* rank;
  const char* on_node;  // the ranks of this process's node; "": no variable says it
};
// SLURM_NTASKS is excluded: a batch script has it too, where one process is right.
constexpr std::array<Names, 6> known = {{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                         {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"},
                                         {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
                                         {"MPI_WORLD_SIZE", "MPI_WORLD_RANK", ""},
                                         {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", ""},
                                         {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"}}};

}  // namespace

std::unique_ptr<job::Job> join(job::Answer answer) {
  // Read before MPI starts: some libraries set such variables themselves.
  const auto claim = launcher_claim(own_environment);
  const double until_sigkill_s = seconds_until_sigkill(own_environment);
  auto ranks = std::make_unique<Ranks>();
  try {
    check_launch(claim, ranks->size(), ranks->library());
  } catch (const Error& e) {
    // mpirun kills the job when the first process exits, so processes without a message wait a second for the one that
    // has it.
    if (*e.what() == '\0') std::this_thread::sleep_for(std::chrono::seconds(1));
    throw;
  }
  return std::make_unique<MpiJob>(std::move(ranks), until_sigkill_s, std::move(answer));
}

std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<LauncherClaim> launcher_claim(const Lookup& lookup) {
  for (const Names& names : known) {
    const auto size = integer(lookup(names.size));
    const auto rank = integer(lookup(names.rank));
    if (size && rank) {
      return LauncherClaim{names.size, *size, *rank, integer(lookup(names.on_node)).value_or(0)};
    }
  }
  return std::nullopt;
}

machine::GpuEnvironment gpu_environment(const Lookup& lookup) {
  machine::GpuEnvironment e;
  const auto visible = lookup("CUDA_VISIBLE_DEVICES");
  e.restricted = visible.has_value();
  e.visible = visible.value_or("");
  // With ConstrainDevices, each task of a Slurm step sees only its own GPUs, numbered from 0: the "0" of two tasks are
  // different GPUs.
  e.own_task = lookup("SLURM_LOCALID").value_or("");
  return e;
}

void check_launch(const std::optional<LauncherClaim>& claim, int mpi_size, const std::string& mpi_library) {
  if (!claim || claim->size <= 1 || mpi_size != 1) return;
  if (claim->rank != 0) throw Error("");
  fail(
      "the launcher started {} processes ({}), but MPI reports that each is the only one: the launcher does not match "
      "the MPI library of this program.\n"
      "  MPI library: {}\n"
      "  Use the mpirun that belongs to this library (`which -a mpirun` lists all that are installed). Under Slurm, "
      "`srun --mpi=list` lists what srun supports: try --mpi=pmix or --mpi=pmi2",
      claim->size, claim->variable, mpi_library);
}

double seconds_until_sigkill(const Lookup& lookup) {
  // Open MPI's mpirun turns SIGINT and SIGTERM into SIGTERM for every rank and kills them after this many seconds.
  if (!lookup("OMPI_COMM_WORLD_SIZE")) return 0;
  for (const char* name : {"OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"}) {
    if (const auto seconds = integer(lookup(name))) return *seconds;
  }
  return 1;
}

}  // namespace harness::mpi
