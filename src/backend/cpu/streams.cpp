#include "backend/cpu/streams.h"

#include <omp.h>

#include "base/clock.h"

namespace harness::cpu {
namespace {
struct Stopped {};  // unwinds a stream that another one's failure has stopped
}  // namespace

TaskList::TaskList(std::vector<Task> list, std::size_t streams, program::OperationId closing_operation)
    : tasks(std::move(list)), by_stream(streams), waited_for(tasks.size(), 0), closing(closing_operation) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    auto& mine = by_stream[tasks[i].stream];
    position.push_back(static_cast<std::int64_t>(mine.size()));
    mine.push_back(static_cast<program::OperationId>(i));
    for (const program::OperationId w : tasks[i].waits) waited_for[w] = 1;
  }
}

Streams::Streams(const std::vector<const TaskList*>& lists, std::size_t streams, std::function<void()> abort)
    : abort_(std::move(abort)), done_(streams), states_(streams) {
  for (std::size_t s = 1; s < streams; ++s) {
    bool has_work = false;
    for (const TaskList* list : lists) has_work = has_work || !list->by_stream[s].empty();
    if (has_work) threads_.emplace_back([this, s] { worker(s); });
  }
}

Streams::~Streams() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (auto& t : threads_) t.join();
}

double Streams::run(const TaskList& list, std::vector<program::Interval>* intervals) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    list_ = &list;
    intervals_ = intervals;
    if (intervals) intervals->assign(list.tasks.size(), {});
    for (auto& d : done_) d.store(0, std::memory_order_relaxed);
    began_s_ = system_clock().seconds();
    closed_s_ = -1;
    busy_ = threads_.size();
    ++generation_;
  }
  if (!threads_.empty()) changed_.notify_all();
  run_stream(0);
  operation_.store(-1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
  return closed_s_ >= 0 ? closed_s_ : system_clock().seconds();
}

bool Streams::in_communication() const {
  bool any = false;
  for (const auto& s : states_) {
    const State state = s.load(std::memory_order_relaxed);
    if (state == State::computing) return false;
    any = any || state != State::idle;
  }
  return any;
}

void Streams::worker(std::size_t stream) {
  omp_set_num_threads(1);  // the cores belong to the compute stream
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || generation_ != seen; });
      if (ending_) return;
      seen = generation_;
    }
    run_stream(stream);
    {
      const std::lock_guard lock(mutex_);
      --busy_;
    }
    changed_.notify_all();
  }
}

void Streams::run_stream(std::size_t stream) {
  const auto& mine = list_->by_stream[stream];
  try {
    for (std::size_t i = 0; i < mine.size();) {
      const std::int32_t fused = list_->tasks[mine[i]].fused_group;
      std::size_t n = 1;
      while (fused >= 0 && i + n < mine.size() && list_->tasks[mine[i + n]].fused_group == fused) {
        ++n;
      }
      run_batch(stream, &mine[i], n);
      i += n;
    }
  } catch (const Stopped&) {
    // the stream that failed reports
  } catch (...) {
    fail_all(std::current_exception());
  }
  set(stream, State::idle);
}

void Streams::run_batch(std::size_t stream, const program::OperationId* first, std::size_t count) {
  const auto task = [&](std::size_t i) -> const Task& { return list_->tasks[first[i]]; };
  if (stream == 0) operation_.store(first[0], std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) await(stream, task(i));
  if (stopped_.load(std::memory_order_relaxed)) throw Stopped{};
  const double start = intervals_ ? system_clock().seconds() : 0;
  set(stream, task(0).communicates ? State::communicating : State::computing);
  for (std::size_t i = 0; i < count; ++i) {
    if (task(i).work.start) task(i).work.start();
  }
  for (std::size_t i = 0; i < count; ++i) {
    task(i).work.finish();
    if (first[i] == list_->closing) closed_s_ = system_clock().seconds();  // read after the end of the list
    if (intervals_) {
      (*intervals_)[first[i]] = {first[i], static_cast<program::StreamId>(stream), start - began_s_,
                                 system_clock().seconds() - began_s_};
    }
    completed(stream, first[i]);
  }
}

void Streams::await(std::size_t stream, const Task& task) {
  for (const program::OperationId w : task.waits) {
    const std::size_t other = list_->tasks[w].stream;
    const std::int64_t needed = list_->position[w] + 1;
    const auto reached = [&] { return done_[other].load(std::memory_order_acquire) >= needed; };
    if (reached()) continue;
    set(stream, State::waiting);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached() || stopped_.load(std::memory_order_relaxed); });
    if (!reached()) throw Stopped{};
  }
}

void Streams::completed(std::size_t stream, program::OperationId id) {
  const std::size_t at = id;
  if (!list_->waited_for[at]) {
    done_[stream].store(list_->position[at] + 1, std::memory_order_release);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    done_[stream].store(list_->position[at] + 1, std::memory_order_release);
  }
  changed_.notify_all();
}

void Streams::fail_all(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(why);
    stopped_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
  abort_();
}

}  // namespace harness::cpu
