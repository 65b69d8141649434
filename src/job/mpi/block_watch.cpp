// The part of BlockRun that watches the worker and the other ranks.
#include <signal.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "job/mpi/block_run.h"

namespace harness::mpi {
namespace {

constexpr double memory_check_interval_s = 0.2;
constexpr double quick_answer_s = 0.05;   // while memory runs out
constexpr double cause_patience_s = 0.5;  // for the fault behind a lost connection to show

// Whether a worker with this task sends such a frame. It is asked when the frame arrives: later, between collectives
// that the other ranks enter, nothing may throw.
bool is_sound(const job::Frame& frame, const job::Task& task) {
  try {
    if (frame.type == job::FrameType::progress || frame.type == job::FrameType::last_words)
      job::decode<job::WorkerProgress>(frame.payload);
    if (frame.type == job::FrameType::failure) job::decode<job::WorkerFailure>(frame.payload);
    if (frame.type == job::FrameType::published) job::decode<job::Published>(frame.payload);
    if (frame.type == job::FrameType::samples)
      return job::decode<job::Samples>(frame.payload).task.index() == task.index();
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

bool BlockRun::await(job::FrameType wanted, double limit_s) {
  while (!over() && !arrived_.contains(wanted)) {
    look(watching_interval_s);
    if (seconds_since(spawned_) > limit_s) alarms_.raise(Alarm::time_out);
  }
  return !over();
}

void BlockRun::look(double max_wait_s) {
  if (worker_) {
    worker_->pump(max_wait_s);
    read_frames();
    if (watching_) {
      notice_end();
      check_memory();
    }
  }
  alarms_.look();
}

void BlockRun::read_frames() {
  const auto learn = [this](const job::WorkerProgress& progress) {
    const bool moved_on =
        progress.step != progress_.step || progress.phase != progress_.phase || progress.pieces != progress_.pieces;
    if (moved_on) progress_changed_ = Clock::now();
    progress_ = progress;
  };
  bool sound = true;
  while (auto frame = worker_->next_frame()) {
    if (!is_sound(*frame, request_.task)) {
      sound = false;
    } else if (frame->type == job::FrameType::progress || frame->type == job::FrameType::last_words) {
      learn(job::decode<job::WorkerProgress>(frame->payload));
      ++progress_answers_;
      had_last_words_ = had_last_words_ || frame->type == job::FrameType::last_words;
    } else if (frame->type == job::FrameType::failure) {
      const job::WorkerFailure failure = job::decode<job::WorkerFailure>(frame->payload);
      learn(failure.progress);
      const bool lost = failure.kind == FaultKind::peer_lost;
      blame(failure.kind, failure.text, lost ? Alarm::peer_lost : Alarm::stop);
    } else {
      if (frame->type == job::FrameType::published) reached(job::WorkerPhase::exchanging);
      if (frame->type == job::FrameType::ready) reached(job::WorkerPhase::ready);
      arrived_[frame->type] = std::move(frame->payload);
    }
  }
  if ((!sound || worker_->damaged()) && watching_) {
    blame(FaultKind::error, "sent its supervisor what is no message of harness");
    worker_->kill();
  }
}

// Records progress that follows from the order of messages, without asking the worker.
void BlockRun::reached(job::WorkerPhase phase) {
  progress_ = {};
  progress_.phase = phase;
  progress_.step = job::WorkerProgress::unknown_step;
}

void BlockRun::notice_end() {
  const auto end = worker_->ended();
  if (!end || report_.kind != FaultKind::none) return;
  if (!had_last_words_) {  // an earlier answer says where it was then, not where it died
    progress_.step = job::WorkerProgress::unknown_step;
    progress_.operation = {};
  }
  const bool bad_alloc = worker_->last_words().find("std::bad_alloc") != std::string::npos;
  if (end->signal == SIGABRT && bad_alloc) {  // thrown in a thread without a handler
    blame(FaultKind::out_of_memory, fmt::format("out of memory: limit {}", show_bytes(share_.memory_limit_bytes)));
  } else if (end->signal != 0) {
    blame(FaultKind::signal, "", Alarm::stop, end->signal);
  } else {
    blame(FaultKind::early_exit, "", Alarm::stop, end->exit_code);
  }
}

// RLIMIT_DATA fails a single large allocation; this catches the rest before the kernel picks a victim.
void BlockRun::check_memory() {
  if (share_.memory_limit_bytes <= 0 || seconds_since(memory_checked_) < memory_check_interval_s) return;
  memory_checked_ = Clock::now();
  const double used = worker_->resident_bytes();
  if (used <= share_.memory_limit_bytes) return;
  const auto answers = progress_answers_;
  worker_->send(job::FrameType::ask, "");
  const auto asked = Clock::now();
  while (progress_answers_ == answers && report_.kind == FaultKind::none && seconds_since(asked) < quick_answer_s) {
    worker_->pump(1e-3);
    read_frames();
  }
  blame(FaultKind::out_of_memory, fmt::format("exceeded its memory limit: used {} of {}", show_bytes(used),
                                              show_bytes(share_.memory_limit_bytes)));
  worker_->kill();
}

void BlockRun::blame(FaultKind kind, std::string_view text, Alarm alarm, std::int32_t code) {
  if (report_.kind != FaultKind::none) return;
  report_.kind = kind;
  report_.code = code;
  report_.progress = progress_;
  report_.text = cut_text(text, RankReport::most_text);
  alarms_.raise(alarm);
}

// Runs before any worker is killed, so that no answer is the consequence of another worker's end.
void BlockRun::examine() {
  if (!worker_ || report_.kind != FaultKind::none || arrived_.contains(job::FrameType::samples)) return;
  const auto began = Clock::now();
  if (alarms_.current() == Alarm::peer_lost) {
    while (report_.kind == FaultKind::none && alarms_.current() == Alarm::peer_lost &&
           seconds_since(began) < cause_patience_s) {
      look(1e-3);
    }
  }
  if (alarms_.current() != Alarm::time_out || report_.kind != FaultKind::none) return;
  const auto answers = progress_answers_;
  worker_->send(job::FrameType::ask, "");
  while (report_.kind == FaultKind::none && progress_answers_ == answers && alarms_.current() == Alarm::time_out &&
         seconds_since(began) < answer_patience_s) {
    look(1e-3);
  }
  const bool stepping = progress_.phase >= job::WorkerPhase::stepping;
  const std::string text =
      stepping ? fmt::format("no step finished within {} (deadlines: step)", show_seconds(request_.deadlines.step_s))
               : fmt::format("not ready to run within {} (deadlines: start)", show_seconds(request_.deadlines.start_s));
  FaultKind kind = progress_.in_communication != 0 ? FaultKind::waiting : FaultKind::hung;
  if (progress_answers_ == answers) kind = FaultKind::silent;
  blame(kind, text, Alarm::time_out);
}

}  // namespace harness::mpi
