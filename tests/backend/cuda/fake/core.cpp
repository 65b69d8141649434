#include "core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace harness::fake {
namespace {

// Never destroyed: stream threads may still use it while the program exits.
struct Shared {
  std::mutex mutex;
  Settings settings;
  std::vector<std::string> complaints;
  std::vector<Part> parts;
  std::atomic<std::uint64_t> chances{0};
};

Shared& shared() {
  static Shared& all = *new Shared;
  return all;
}

thread_local std::int64_t passed_ns = 0;

}  // namespace

const Settings& settings() {
  return shared().settings;
}

void complain(const std::string& what) {
  const std::lock_guard lock(shared().mutex);
  shared().complaints.push_back(what);
}

std::vector<std::string> complaints() {
  const std::lock_guard lock(shared().mutex);
  return shared().complaints;
}

std::int64_t device_clock_ns() {
  if (settings().lt_fast_algorithm >= 0 || settings().copy_in_bytes_per_s > 0) return passed_ns;
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void pass_ns(std::int64_t duration) {
  passed_ns += duration;
}

void pass_until_ns(std::int64_t moment) {
  passed_ns = std::max(passed_ns, moment);
}

Chance::Chance() : engine_(0x9E3779B97F4A7C15ull + shared().chances++) {}

void Chance::delay() {
  constexpr int every = 6, longest_us = 200;  // one in `every` operations sleeps
  if (below(every) == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(below(longest_us + 1)));
  } else if (below(4) == 0) {
    std::this_thread::yield();
  }
}

Chance& thread_chance() {
  thread_local Chance chance;
  return chance;
}

bool take_part(Part part) {
  const std::lock_guard lock(shared().mutex);
  auto& parts = shared().parts;
  parts.insert(std::upper_bound(parts.begin(), parts.end(), part,
                                [](const Part& a, const Part& b) { return a.order < b.order; }),
               part);
  return true;
}

void reset(const Settings& settings) {
  for (const Part& part : shared().parts) {
    if (part.reset) part.reset();
  }
  const std::lock_guard lock(shared().mutex);
  shared().settings = settings;
  shared().complaints.clear();
  shared().chances = 0;
}

std::vector<std::string> leaks() {
  std::vector<std::string> list;
  for (const Part& part : shared().parts) {
    if (part.leaks) part.leaks(list);
  }
  return list;
}

}  // namespace harness::fake
