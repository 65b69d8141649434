#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "job/job.h"
#include "machine/conditions.h"
#include "sim/simulation.h"

namespace harness::simjob {

/// A clock of virtual seconds, which begins now.
class VirtualClock final : public Clock {
 public:
  VirtualClock() : start_unix_s_(system_clock().unix_s()) {}
  double seconds() const override { return passed_s_; }
  double unix_s() const override { return start_unix_s_ + passed_s_; }
  void pass(double seconds) { passed_s_ += seconds; }

 private:
  double start_unix_s_, passed_s_ = 0;
};

/// Returns the TimelineSamples of a profiled step by rank, as workers would, with the intervals of one rank per role or
/// of all ranks.
std::vector<job::Samples> profiled_samples(const sim::Simulation& simulation, config::Timelines kept);

/// A job on a simulated cluster: blocks take virtual time, and every step of a case takes the same. It has no worker
/// and no other rank, so follow() and ask() are not called.
class SimulatedJob final : public job::Job {
 public:
  /// Places ranks as `topology` says, on the experiment's hardware and with its calibration; the blocks must be of its
  /// model. Throws Error if the experiment names no hardware, or if a link that these ranks need has no rate.
  SimulatedJob(const config::Experiment& experiment, const machine::Topology& topology);

  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(places_.size()); }
  const std::vector<job::RankPlace>& places() const override { return places_; }
  /// Nothing fails by chance in virtual time: throws Error if a step cannot be predicted, which planning finds first.
  job::BlockOutcome run(const job::BlockOnSet& block) override;
  std::vector<std::string> ask(const std::string& question) override {
    fail("a simulated job has nobody to ask ({})", quote(question));
  }
  int follow() override { return 0; }
  void finish(int) override {}
  void leave() override {}
  /// Counts the stop signals that this process received.
  int stop_requests() const override { return job::stop_signals(); }
  double allocation_end_unix_s() const override { return 0; }
  const Clock& clock() const override { return clock_; }

 private:
  std::vector<job::Samples> samples_of(const job::BlockRequest& request);
  std::unique_ptr<sim::Simulation> simulate(const job::BlockRequest& request) const;

  config::Experiment experiment_;
  sim::Network network_;
  std::vector<job::RankPlace> places_;
  VirtualClock clock_;
  std::map<std::string, double> step_s_;  // of simulated steps, by settings and layout
};

}  // namespace harness::simjob
