#include "data/loader.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"

namespace harness::data {
namespace {

using Clock = std::chrono::steady_clock;

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double Loading::exposed_s(double step_s) const {
  const double storage_s = bytes_per_s > 0 ? bytes / bytes_per_s : 0, batch_s = storage_s + cost_s * tokens;
  if (workers == 0) return batch_s;
  const double every_s = std::max(storage_s, batch_s / std::min(workers, prefetch));
  return std::max(0.0, every_s - step_s);
}

Loading loading_of(const config::Settings& settings, double tokens, std::int64_t vocabulary) {
  if (settings.data_file.empty() || !(tokens > 0)) return {};
  return {settings.loader_workers,     settings.loader_prefetch, tokens, tokens * usual_token_bytes(vocabulary),
          settings.loader_bytes_per_s, settings.loader_cost_s};
}

double tokens_of(const program::Program& program) {
  constexpr std::string_view position_ids = "position_ids";  // on all stages, and not in the file
  std::int64_t tokens = 0;  // there are as many labels: the same tokens, shifted by one
  for (const program::Buffer& buffer : program.buffers) {
    const bool holds_tokens = buffer.kind == program::BufferKind::input && buffer.type == program::DType::i32;
    if (holds_tokens && buffer.name != position_ids) tokens = std::max(tokens, buffer.count);
  }
  return static_cast<double>(tokens);
}

double Throttle::serve(double now_s, double bytes) {
  if (bytes_per_s_ <= 0) return now_s;
  free_at_s_ = std::max(free_at_s_, now_s) + bytes / bytes_per_s_;
  return free_at_s_;
}

// Batches that are loaded but not yet taken, and the threads that load them.
class Loader::Ring {
 public:
  Ring(std::unique_ptr<program::InputSource> source, const program::Program& program, const Loading& loading)
      : source_(std::move(source)), loading_(loading), throttle_(loading.bytes_per_s) {
    for (const program::Buffer& buffer : program.buffers) {
      if (buffer.kind == program::BufferKind::input)
        inputs_.emplace_back(buffer.name, static_cast<std::size_t>(buffer.bytes()));
    }
  }
  ~Ring() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool has_workers() const { return loading_.workers > 0; }

  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) {
    if (step != current_step_) take(step);
    const auto input = std::ranges::find(inputs_, buffer, &std::pair<std::string, std::size_t>::first);
    if (input == inputs_.end() || input->second != to.size())
      fail("input buffer {} of {} bytes is not among those that are loaded", buffer, to.size());
    std::ranges::copy(current_[static_cast<std::size_t>(input - inputs_.begin())], to.begin());
  }

 private:
  using Batch = std::vector<std::vector<std::byte>>;  // by input
  struct Loaded {
    Batch batch;
    std::exception_ptr failure;
  };

  // Makes the batch of this step the current one.
  void take(std::int64_t step) {
    Loaded taken = loading_.workers == 0 ? load(step) : await(step);
    if (taken.failure) std::rethrow_exception(taken.failure);
    current_ = std::move(taken.batch);
    current_step_ = step;
  }

  Loaded await(std::int64_t step) {
    std::unique_lock lock(mutex_);
    while (std::cmp_less(threads_.size(), loading_.workers)) threads_.emplace_back([this] { work(); });
    if (step != wanted_) {
      ++order_;
      ready_.clear();
      wanted_ = next_ = step;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return ready_.contains(step); });
    Loaded taken = std::move(ready_.at(step));
    ready_.erase(step);
    wanted_ = step + 1;
    changed_.notify_all();
    return taken;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || next_ < wanted_ + loading_.prefetch; });
      if (stopping_) return;
      const std::int64_t step = next_++, order = order_;
      lock.unlock();
      Loaded loaded = load(step);
      lock.lock();
      if (order == order_) ready_.emplace(step, std::move(loaded));
      changed_.notify_all();
    }
  }

  Loaded load(std::int64_t step) {
    Loaded loaded;
    try {
      const Clock::time_point there = asked();
      for (const auto& [name, bytes] : inputs_) {
        std::vector<std::byte>& to = loaded.batch.emplace_back(bytes);
        source_->fill(name, step, to);
      }
      sleep_until(there);
      compute(loading_.cost_s * loading_.tokens);
    } catch (...) {
      loaded.failure = std::current_exception();
    }
    return loaded;
  }

  // Requests a batch from the throttled storage. Returns the time of its delivery.
  Clock::time_point asked() {
    constexpr double longest_s = 1e8;  // three years: more does not fit the clock
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    const double now_s = std::chrono::duration<double>(now - began_).count();
    const double wait_s = std::min(longest_s, throttle_.serve(now_s, loading_.bytes) - now_s);
    return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait_s));
  }

  void sleep_until(Clock::time_point then) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, then, [&] { return stopping_.load(); });
  }

  // Keeps the thread's core busy for this much CPU time.
  void compute(double seconds) const {
    if (!(seconds > 0)) return;
    const double end_s = thread_cpu_s() + seconds;
    while (thread_cpu_s() < end_s && !stopping_) {
    }
  }

  std::unique_ptr<program::InputSource> source_;
  Loading loading_;
  std::vector<std::pair<std::string, std::size_t>> inputs_;  // names and bytes
  const Clock::time_point began_ = Clock::now();

  // Used only by the thread that calls fill().
  std::int64_t current_step_ = -1;
  Batch current_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Throttle throttle_;
  std::map<std::int64_t, Loaded> ready_;  // by step
  std::int64_t wanted_ = 0;               // the step that is taken next
  std::int64_t next_ = 0;                 // the step that is loaded next
  std::int64_t order_ = 0;                // how often steps were asked for out of order
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

Loader::Loader(std::unique_ptr<program::InputSource> source, const program::Program& program, const Loading& loading)
    : ring_(std::make_unique<Ring>(std::move(source), program, loading)) {}

Loader::~Loader() = default;

bool Loader::is_loaded_by_step() const {
  return !ring_->has_workers();
}

void Loader::fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const {
  ring_->fill(buffer, step, to);
}

std::unique_ptr<program::InputSource> with_loader(std::unique_ptr<program::InputSource> source,
                                                  const program::Program& program, const config::Settings& settings,
                                                  std::int64_t vocabulary) {
  const Loading loading = loading_of(settings, tokens_of(program), vocabulary);
  if (!(loading.tokens > 0)) return source;
  return std::make_unique<Loader>(std::move(source), program, loading);
}

}  // namespace harness::data
