#include "store/sign_of_life.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/identity.h"
#include "store/owner.h"

namespace harness::store {
namespace {

constexpr std::size_t count_digits = 12, time_at = 13, time_length = 20, period_at = 40, period_digits = 5;

std::optional<std::int64_t> digits(std::string_view text) {
  std::int64_t number = 0;
  for (const char c : text) {
    if (c == ' ' && number == 0) continue;
    if (c < '0' || c > '9') return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

}  // namespace

std::string print_beat(const Beat& beat) {
  return fmt::format("{:012} {:20.20} every {:5} ms\n", beat.count, beat.time, beat.period.count());
}

std::optional<Beat> parse_beat(std::string_view text) {
  if (text.size() != beat_bytes) return std::nullopt;
  const auto count = digits(text.substr(0, count_digits)), period = digits(text.substr(period_at, period_digits));
  if (!count || !period) return std::nullopt;
  Beat beat{*count, std::string(text.substr(time_at, time_length)), std::chrono::milliseconds(*period)};
  const bool clean = std::ranges::all_of(beat.time, [](char c) { return c >= ' ' && c <= '~'; });
  return clean && print_beat(beat) == text ? std::optional(beat) : std::nullopt;
}

std::chrono::milliseconds beat_period() {
  const char* text = test_hook("HARNESS_TEST_SIGN_OF_LIFE_S");
  const double seconds = text == nullptr ? 5 : std::atof(text);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(static_cast<std::int64_t>(1000 * seconds), 10, 60000));
}

struct SignOfLife::State {
  struct Place {
    int descriptor;
    off_t offset;
  };
  std::mutex mutex;
  std::condition_variable woken;
  std::vector<Place> places;
  bool stopped = false;
};

SignOfLife::SignOfLife() : state_(std::make_shared<State>()) {
  // Signals are for the threads that count them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(run, state_).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SignOfLife::~SignOfLife() {
  stop();
}

void SignOfLife::add(int descriptor, off_t offset) {
  const std::scoped_lock lock(state_->mutex);
  state_->places.push_back({descriptor, offset});
  state_->woken.notify_all();
}

void SignOfLife::stop() {
  const std::scoped_lock lock(state_->mutex);
  state_->stopped = true;
  state_->woken.notify_all();
}

void SignOfLife::run(const std::shared_ptr<State>& state) {
  Beat beat{0, "", beat_period()};
  std::unique_lock lock(state->mutex);
  while (!state->stopped) {
    const std::vector<State::Place> places = state->places;
    lock.unlock();
    ++beat.count;
    beat.time = own_time();
    const std::string text = print_beat(beat);
    for (const State::Place& place : places) {
      // A file that another owner has removed may refuse; whoever looks at its successor is not misled.
      if (pwrite(place.descriptor, text.data(), text.size(), place.offset) > 0) fdatasync(place.descriptor);
    }
    lock.lock();
    state->woken.wait_for(lock, beat.period, [&] { return state->stopped || state->places.size() != places.size(); });
  }
  for (const State::Place& place : state->places) close(place.descriptor);
}

}  // namespace harness::store
