#include "graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>

namespace harness::fake {
namespace {

// A thread for every task that is given while all others are busy: tasks may block in one another.
class Threads {
 public:
  void start(Work task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (static_cast<int>(tasks_.size()) > idle_) {
      ++idle_;  // it is, until it takes a task
      std::thread([this] { serve(); }).detach();
    } else {
      changed_.notify_one();
    }
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      --idle_;
      Work task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> tasks_;
  int idle_ = 0;
};

Threads& threads() {
  static auto& all = *new Threads;
  return all;
}

struct Launch {
  Launch(const Graph& graph, std::vector<Work> all_works, int device)
      : works(std::move(all_works)), missing(works.size()), next(works.size()), left(works.size()), device(device) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      missing[i] = static_cast<int>(graph.nodes[i].after.size());
      for (const int earlier : graph.nodes[i].after) next[earlier].push_back(static_cast<int>(i));
    }
  }

  std::vector<Work> works;
  std::vector<int> missing;
  std::vector<std::vector<int>> next;
  std::size_t left;
  int device;
  std::mutex mutex;
  std::condition_variable changed;
};

void run_branch(const std::shared_ptr<Launch>& launch, int node);

// One of the nodes that became ready together is returned to go on with; the others get threads. In any order.
int fork(const std::shared_ptr<Launch>& launch, std::vector<int> ready) {
  if (ready.empty()) return -1;
  for (std::size_t i = ready.size(); i > 1; --i) {
    std::swap(ready[i - 1], ready[thread_chance().below(static_cast<int>(i))]);
  }
  for (std::size_t i = 1; i < ready.size(); ++i) {
    threads().start([launch, node = ready[i]] { run_branch(launch, node); });
  }
  return ready[0];
}

void run_branch(const std::shared_ptr<Launch>& launch, int node) {
  while (node >= 0) {
    thread_chance().delay();
    try {
      launch->works[node]();
    } catch (const std::exception& problem) {
      break_device(launch->device, cudaErrorLaunchFailure,
                   fmt::format("a kernel of a graph threw: {}", problem.what()));
    }
    std::vector<int> ready;
    {
      const std::lock_guard lock(launch->mutex);
      for (const int later : launch->next[node]) {
        if (--launch->missing[later] == 0) ready.push_back(later);
      }
      if (--launch->left == 0) launch->changed.notify_all();
    }
    node = fork(launch, std::move(ready));
  }
}

}  // namespace

void run_graph(const Graph& graph, std::vector<Work> works, int device) {
  const auto launch = std::make_shared<Launch>(graph, std::move(works), device);
  std::vector<int> roots;
  for (std::size_t i = 0; i < launch->missing.size(); ++i) {
    if (launch->missing[i] == 0) roots.push_back(static_cast<int>(i));
  }
  run_branch(launch, fork(launch, std::move(roots)));
  std::unique_lock lock(launch->mutex);
  launch->changed.wait(lock, [&] { return launch->left == 0; });
}

}  // namespace harness::fake
