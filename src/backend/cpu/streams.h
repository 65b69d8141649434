#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/communication.h"
#include "program/program.h"

namespace harness::cpu {

/// An operation, ready to run.
struct Task {
  program::StreamId stream = 0;
  std::vector<program::OperationId> waits;
  std::int32_t fused_group = -1;
  bool communicates = false;
  Transfer work;  // of a computation: finish() alone
};

/// Tasks in the order of a Program's operation list.
class TaskList {
 public:
  TaskList() = default;
  /// `closing`: the operation whose end is the list's completion time; -1: the end of the list.
  TaskList(std::vector<Task> tasks, std::size_t streams, program::OperationId closing);

  std::vector<Task> tasks;
  std::vector<std::vector<program::OperationId>> by_stream;
  std::vector<std::int64_t> position;  // of a task within its stream
  std::vector<char> waited_for;        // by a task of another stream
  program::OperationId closing = -1;
};

/// Runs task lists: stream 0 on the calling thread, every other stream that has work on a thread of its own. Threads
/// sleep while they wait. A failure on any stream stops all streams; this and every later run() throws it.
class Streams {
 public:
  /// `abort` is called once, by the stream that fails first, and must make pending transfers fail. `lists`: all lists
  /// that run() will get; they must outlive this.
  Streams(const std::vector<const TaskList*>& lists, std::size_t streams, std::function<void()> abort);
  ~Streams();

  /// Runs a list. Returns its completion time (steady clock, seconds). `intervals`, if given, gets one entry per task.
  double run(const TaskList& list, std::vector<program::Interval>* intervals = nullptr);

  program::OperationId operation() const { return operation_.load(std::memory_order_relaxed); }
  bool in_communication() const;

 private:
  enum class State : std::uint8_t { idle, computing, communicating, waiting };

  void worker(std::size_t stream);
  void run_stream(std::size_t stream);
  void run_batch(std::size_t stream, const program::OperationId* first, std::size_t count);
  void await(std::size_t stream, const Task& task);
  void completed(std::size_t stream, program::OperationId id);
  void fail_all(std::exception_ptr why);
  void set(std::size_t stream, State s) { states_[stream].store(s, std::memory_order_relaxed); }

  std::function<void()> abort_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const TaskList* list_ = nullptr;
  std::vector<program::Interval>* intervals_ = nullptr;
  double began_s_ = 0, closed_s_ = 0;
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;  // threads that have not finished the list
  bool ending_ = false;
  std::atomic<bool> stopped_{false};
  std::exception_ptr failure_;
  std::vector<std::atomic<std::int64_t>> done_;  // per stream: tasks of the list completed
  std::vector<std::atomic<State>> states_;
  std::atomic<program::OperationId> operation_{-1};
};

}  // namespace harness::cpu
