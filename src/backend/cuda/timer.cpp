#include "backend/cuda/timer.h"

#include <algorithm>
#include <chrono>

#include "backend/cuda/kernels/kernels.h"
#include "base/median.h"

namespace harness::cuda {
namespace {
constexpr int max_calls = 200;  // at a time: a stream holds a limited number of launches
}

double Timer::measure(const std::vector<Blas::Run>& runs, int calls) {
  spin(stream_.get(), 50e-6 + 5e-6 * calls);  // the device waits until the host has queued everything
  begin_.record(stream_.get());
  for (int i = 0; i < calls; ++i) runs[i % runs.size()](stream_.get());
  end_.record(stream_.get());
  synchronize(stream_.get());
  return end_.seconds_since(begin_) / calls;
}

double Timer::sustained(const std::vector<Blas::Run>& runs, double seconds) {
  constexpr double longest_batch_s = 0.05;
  const double rounds = std::min(longest_batch_s, seconds) / std::max(measure(runs, 2), 1e-7);
  const int batch = static_cast<int>(std::clamp(rounds, 1.0, double{max_calls}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  double total_s = 0;
  std::int64_t batches = 0;
  do {
    total_s += measure(runs, batch);
    ++batches;
  } while (std::chrono::steady_clock::now() < end);
  return total_s / static_cast<double>(batches);
}

std::vector<double> Timer::medians(const std::vector<std::vector<Blas::Run>>& candidates, int rounds) {
  const int count = static_cast<int>(candidates.size());
  std::vector<std::vector<double>> seconds(candidates.size());
  for (int done = 0; done < rounds;) {
    const int batch = std::clamp(max_calls / count, 1, rounds - done);
    const int calls = batch * count;
    std::vector<OwnedEvent> ends;  // [i]: of call i - 1
    for (int i = 0; i <= calls; ++i) ends.emplace_back(OwnedEvent::Timing::on);
    spin(stream_.get(), 50e-6 + 10e-6 * calls);
    ends[0].record(stream_.get());
    for (int i = 0; i < calls; ++i) {
      const auto& runs = candidates[i % count];
      runs[(done + i / count) % runs.size()](stream_.get());
      ends[i + 1].record(stream_.get());
    }
    synchronize(stream_.get());
    for (int i = 0; i < calls; ++i) seconds[i % count].push_back(ends[i + 1].seconds_since(ends[i]));
    done += batch;
  }
  std::vector<double> medians;
  for (const auto& s : seconds) medians.push_back(median(s));
  return medians;
}

}  // namespace harness::cuda
