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

namespace {

constexpr std::int64_t copy_bytes = 64 << 20;  // so much that starting a copy takes no notable part of it

// The memory that a copy in one direction reads and writes. The driver takes the host's part from the NUMA node that
// the worker is bound to.
struct Buffers {
  Memory host{Memory::Kind::pinned, copy_bytes, "copies between host and GPU"},
      device{Memory::Kind::device, copy_bytes, "copies between host and GPU"};
};

}  // namespace

machine::HostCopies measure_host_copies(double seconds) {
  const Buffers in, out;
  Timer timer;
  const OwnedStream other(Priority::normal);
  const OwnedEvent begun(OwnedEvent::Timing::off), ended(OwnedEvent::Timing::off);
  const auto to_device = [&](Stream s) { copy_in(s, in.device.data(), in.host.data(), copy_bytes); };
  const auto from_device = [&](Stream s) { copy_out(s, out.host.data(), out.device.data(), copy_bytes); };
  const auto both = [&](Stream s) {
    begun.record(s);
    wait_for(other.get(), begun.get());
    to_device(s);
    from_device(other.get());
    ended.record(other.get());
    wait_for(s, ended.get());
  };
  constexpr auto bytes = static_cast<double>(copy_bytes);
  machine::HostCopies rates;
  rates.to_device_bytes_per_s = bytes / timer.sustained({to_device}, seconds / 3);
  rates.from_device_bytes_per_s = bytes / timer.sustained({from_device}, seconds / 3);
  rates.both_bytes_per_s = 2 * bytes / timer.sustained({both}, seconds / 3);
  return rates;
}

}  // namespace harness::cuda
