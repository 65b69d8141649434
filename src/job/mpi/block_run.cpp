#include "job/mpi/block_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <limits>

#include "base/clock.h"
#include "base/rendezvous.h"
#include "base/text.h"
#include "config/registry.h"
#include "job/job.h"
#include "job/messages.h"
#include "job/mpi/heartbeat.h"

namespace harness::mpi {
namespace {

// "gemm={m: 64, n: 32}" as a part of a file's name: gemm-m-64-n-32.
std::string file_safe(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (plain || (!safe.empty() && safe.back() != '-')) safe += plain ? c : '-';
  }
  while (safe.ends_with('-')) safe.pop_back();
  return safe;
}

// Returns the messages of the ranks that sent one.
template <class Message>
std::vector<Message> decoded(const std::vector<std::string>& of_ranks) {
  std::vector<Message> messages;
  for (const std::string& bytes : of_ranks) {
    if (!bytes.empty()) messages.push_back(job::decode<Message>(bytes));
  }
  return messages;
}

constexpr double wrap_report_s = 300;  // for the command of --wrap to end after its worker

}  // namespace

BlockRun::BlockRun(Ranks& ranks, Alarms& alarms, const Site& site, const Members& members,
                   std::unique_ptr<WorkerProcess>& worker, const job::BlockOnSet& block,
                   const NameValues& rank0_environment)
    : ranks_(ranks),
      alarms_(alarms),
      site_(site),
      members_(members),
      request_(block.request),
      last_(block.last),
      rank0_environment_(rank0_environment),
      idle_([this] { look(0); }),
      number_(members.number_of(site.place.rank)),
      worker_(worker) {
  if (number_) share_ = share_of(site, members, request_);
  report_.rank = site.place.rank;
  report_.host = site.place.host;
}

job::BlockOutcome BlockRun::run() {
  outcome_.start_unix_s = system_clock().unix_s();
  spawned_ = memory_checked_ = Clock::now();
  const NodeWatch watch(site_, members_);
  if (number_) order_block();
  rendezvous();
  if (agree_to_go()) watch_steps();
  const bool success = agree_on_success();
  end_worker(success);
  outcome_.conditions = worst_of(decoded<NodeReport>(ranks_.gather(job::encode(watch.report(cpu_s_)), idle_)));
  outcome_.total_s = seconds_since(spawned_);  // rank 0 has gathered from all ranks, so all workers are done
  return collect(success);
}

void BlockRun::start_worker() {
  NameValues forced = {
      {"OMP_WAIT_POLICY", "passive"},  // a waiting thread must not steal the core of a communication thread
      {"GOMP_SPINCOUNT", "0"},
      {"OMP_NUM_THREADS", std::to_string(share_.threads)},
      {"HARNESS_RANK", std::to_string(*number_)},
      {"HARNESS_RANKS", std::to_string(request_.layout.ranks())},
      {"HARNESS_LOCAL_RANK", std::to_string(share_.local_rank)},
      {"HARNESS_CASE", request_.case_name},
      {"HARNESS_CASE_SLUG", file_safe(request_.case_name)},
      // A worker under a wrapping command has that command as its parent, not this process.
      {"HARNESS_SUPERVISOR", request_.wrap.empty() ? std::to_string(::getpid()) : ""},
  };
  // A step has up to eight streams, and NCCL adds its own. With CUDA's default of 8 hardware queues, independent
  // streams share a queue and wait for each other. 32 is the maximum (CUDA C++ Programming Guide, environment
  // variables).
  constexpr const char* queues = "CUDA_DEVICE_MAX_CONNECTIONS";
  if (config::traits_of(request_.backend).ranks_are_gpus &&
      std::ranges::find(rank0_environment_, queues, &NameValues::value_type::first) == rank0_environment_.end()) {
    forced.emplace_back(queues, "32");
  }
  NameValues wanted = config::environment_of(request_.settings);
  wanted.insert(wanted.end(), request_.environment.begin(), request_.environment.end());
  try {
    const InPlace inherited(share_);  // the worker inherits it before any of its libraries reads it
    worker_ = std::make_unique<WorkerProcess>(
        job::worker_environment(job::own_environment(), rank0_environment_, forced, wanted), request_.wrap);
  } catch (const Error& e) {
    blame(FaultKind::error, e.what());
  }
}

void BlockRun::order_block() {
  if (worker_) {
    cpu_before_s_ = worker_->cpu_s();
  } else {
    start_worker();
  }
  if (!worker_) return;
  watching_ = true;
  worker_->send(job::FrameType::order,
                job::encode(job::WorkerOrder{request_, *number_, share_.threads, share_.memory_limit_bytes,
                                             share_.local_rank, share_.local_ranks}));
}

// Delivers each worker's rendezvous messages to their addressees alone.
void BlockRun::rendezvous() {
  std::map<int, std::vector<RendezvousMessage>> by_peer;
  if (worker_ && await(job::FrameType::published, request_.deadlines.start_s)) {
    job::Published published = job::decode<job::Published>(arrived_[job::FrameType::published]);
    program_hash_ = published.program_hash;
    for (RendezvousMessage& message : published.messages) {
      if (message.peer < 0 || message.peer >= request_.layout.ranks()) continue;
      by_peer[message.peer].push_back(std::move(message));
    }
  }
  std::vector<std::pair<int, std::string>> outgoing;
  outgoing.reserve(by_peer.size());
  for (const auto& [peer, messages] : by_peer) outgoing.emplace_back(members_.rank_of(peer), job::encode(messages));
  std::vector<RendezvousMessage> received;
  for (const auto& [from, bytes] : ranks_.exchange(outgoing, idle_)) {
    for (RendezvousMessage& message : job::decode<std::vector<RendezvousMessage>>(bytes)) {
      message.peer = members_.number_of(from).value();  // every sender has a worker
      received.push_back(std::move(message));
    }
  }
  if (!worker_ || over()) return;
  worker_->send(job::FrameType::peers, job::encode(received));
  reached(job::WorkerPhase::connecting);
  await(job::FrameType::ready, request_.deadlines.start_s);
}

bool BlockRun::agree_to_go() {
  constexpr auto nothing = std::numeric_limits<std::int64_t>::min();
  const auto hash = std::bit_cast<std::int64_t>(program_hash_);
  const bool compares = worker_ && !over();
  const double setup_s = seconds_since(spawned_);
  std::array<std::int64_t, 5> all = {over() ? 1 : 0, alarms_.stop_level(), compares ? hash : nothing,
                                     compares ? ~hash : nothing, static_cast<std::int64_t>(setup_s * 1e6)};
  ranks_.maximum(all, idle_);
  alarms_.learn_stop_level(static_cast<int>(all[1]));
  outcome_.setup_s = static_cast<double>(all[4]) * 1e-6;
  if (all[0] != 0) return false;
  if (all[2] != ~all[3] && number_) {
    blame(FaultKind::error,
          fmt::format("the ranks built different Programs from the same request ({:016x} on this rank): check that all "
                      "nodes run the same build of harness",
                      program_hash_));
  }
  return all[2] == ~all[3];
}

void BlockRun::watch_steps() {
  if (!worker_ || over()) return;
  worker_->send(job::FrameType::go, "");
  reached(job::WorkerPhase::stepping);
  progress_changed_ = Clock::now();
  const double limit_s = request_.deadlines.step_s;
  constexpr std::chrono::seconds longest_look(1);
  auto asked = progress_changed_;
  while (!over() && !arrived_.contains(job::FrameType::samples)) {
    const auto before = Clock::now();
    look(watching_interval_s);
    // While this process was suspended, it could not see the worker move on.
    const auto after = Clock::now();
    const auto unseen = after - before - longest_look;
    if (unseen.count() > 0) progress_changed_ = std::min(after, progress_changed_ + unseen);
    if (seconds_since(asked) > limit_s / 2) {
      worker_->send(job::FrameType::ask, "");
      asked = Clock::now();
    }
    // A step may have ended since the last answer, so the one to the latest question counts.
    if (seconds_since(progress_changed_) > limit_s + answer_patience_s) {
      alarms_.raise(Alarm::time_out);
      return;
    }
  }
}

bool BlockRun::agree_on_success() {
  if (over()) examine();
  const bool complete = !worker_ || arrived_.contains(job::FrameType::samples);
  std::array<std::int64_t, 2> all = {over() || !complete ? 1 : 0, alarms_.stop_level()};
  Waiter waiter(idle_interval_s);
  const auto sitting_out = [&] {
    look(0);
    waiter.sleep();
  };
  ranks_.maximum(all, worker_ ? idle_ : Ranks::Idle(sitting_out));
  alarms_.learn_stop_level(static_cast<int>(all[1]));
  return all[0] == 0;
}

void BlockRun::end_worker(bool success) {
  watching_ = false;
  if (!worker_) return;
  if (success && last_) worker_->send(job::FrameType::bye, "");
  const bool ends = !success || last_;
  if (!success || (last_ && !ends_by_itself())) {
    worker_->kill();
    worker_->reap(5.0);
  }
  cpu_s_ = worker_->cpu_s() - cpu_before_s_;
  if (!success) report_.last_words = cut_text(worker_->last_words(), RankReport::most_last_words, true);
  if (ends) worker_.reset();
}

// A worker ends at once. A wrapping command may still write its report, until the job is stopped.
bool BlockRun::ends_by_itself() {
  const double limit_s = request_.wrap.empty() ? 2 : wrap_report_s;
  const auto began = Clock::now();
  do {
    if (worker_->reap(0.1)) return true;
    alarms_.look();
  } while (seconds_since(began) < limit_s && alarms_.stop_level() < 2);
  return false;
}

// Makes all ranks keep the same profiled step, chosen by how long each step took the slowest rank.
void BlockRun::agree_on_profiled_step(int steps) {
  job::Samples samples;
  std::vector<std::int64_t> nanoseconds(steps);
  if (number_) {
    samples = job::decode<job::Samples>(arrived_[job::FrameType::samples]);
    const auto& offered = std::get<job::TimelineSamples>(samples.task).offered;
    for (std::size_t i = 0; i < std::min(offered.size(), nanoseconds.size()); ++i)
      nanoseconds[i] = static_cast<std::int64_t>(offered[i].step_s * 1e9);
  }
  ranks_.maximum(nanoseconds, idle_);
  if (!number_) return;
  std::vector<double> seconds;
  for (const std::int64_t ns : nanoseconds) seconds.push_back(static_cast<double>(ns) * 1e-9);
  job::choose_step(std::get<job::TimelineSamples>(samples.task), seconds);
  arrived_[job::FrameType::samples] = job::encode(samples);
}

job::BlockOutcome BlockRun::collect(bool success) {
  if (success) {
    if (const auto* timeline = std::get_if<job::RecordTimeline>(&request_.task))
      agree_on_profiled_step(timeline->steps);
    outcome_.samples = decoded<job::Samples>(ranks_.gather(arrived_[job::FrameType::samples], idle_));
    outcome_.ok = true;
    return outcome_;
  }
  const auto reports = decoded<RankReport>(ranks_.gather(number_ ? job::encode(report_) : "", idle_));
  if (ranks_.rank() != 0) return outcome_;
  outcome_.stopped = alarms_.stop_level() >= 2;
  Blame blame = outcome_.stopped ? Blame{-1, "stopped by a signal", "stopped"} : find_culprit(reports);
  outcome_.culprit_rank = blame.culprit_rank;
  outcome_.reason = std::move(blame.reason);
  outcome_.signature = std::move(blame.signature);
  return outcome_;
}

}  // namespace harness::mpi
