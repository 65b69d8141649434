// Shared by all stand-ins: settings, complaints, handles and random delays.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fake.h"

namespace harness::fake {

const Settings& settings();
void complain(const std::string& what);

// The time that events record, in nanoseconds: the machine's clock, or, if Settings give the duration of products or
// copies, the simulated time of the stream that the calling thread serves.
std::int64_t device_clock_ns();
void pass_ns(std::int64_t duration);
// The stream waited for another one until this moment.
void pass_until_ns(std::int64_t moment);

// Random numbers, a different sequence for each object. Not thread-safe.
class Chance {
 public:
  Chance();
  int below(int bound) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(bound)); }
  // Sleeps, yields or returns at once, as a busy device may before any operation.
  void delay();

 private:
  std::mt19937_64 engine_;
};
Chance& thread_chance();

// A source file's hooks for reset() and leaks(). Registered at first use, never removed.
struct Part {
  int order;                    // in reset(): communicators 0, streams 1, the rest 2, memory 3
  std::function<void()> reset;  // may be empty
  std::function<void(std::vector<std::string>& into)> leaks;  // may be empty
};
bool take_part(Part part);

// Live objects by handle. A handle is a number that is never dereferenced and never reused, so that a destroyed or
// foreign handle is always recognised. Each kind has its own number range, and a name for leaks: "streams". A Registry
// is never destroyed.
template <typename Handle, typename Object>
class Registry {
 public:
  Registry(std::uintptr_t kind, const char* name) : next_(kind << 40) {
    take_part({2, [this] { clear(); },
               [this, name](std::vector<std::string>& into) {
                 if (size() > 0) into.push_back(fmt::format("{} {}", size(), name));
               }});
  }

  Handle add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    next_ += 64;
    objects_[next_] = std::move(object);
    return reinterpret_cast<Handle>(next_);
  }
  std::shared_ptr<Object> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> list;
    for (const auto& [number, object] : objects_) list.push_back(object);
    return list;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }
  void clear() {
    std::map<std::uintptr_t, std::shared_ptr<Object>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(objects_);
  }

 private:
  mutable std::mutex mutex_;
  std::uintptr_t next_;
  std::map<std::uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace harness::fake
