#include "machine/gpu_monitor.h"

#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "machine/nvml.h"

namespace harness::machine {
namespace {

constexpr auto period = std::chrono::milliseconds(100);
constexpr auto patience = std::chrono::seconds(2);

}  // namespace

// Shared with the thread, so that a thread that hangs in the driver can be left behind.
struct GpuMonitor::Watch {
  explicit Watch(Nvml::Device gpu) : device(gpu) {}

  const Nvml::Device device;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, running = false;
  std::vector<GpuSample> samples;
  double energy_begin_j = std::numeric_limits<double>::quiet_NaN();
  double energy_end_j = std::numeric_limits<double>::quiet_NaN();

  static void run(const std::shared_ptr<Watch>& watch) {
    const Nvml& nvml = Nvml::get();
    const double begin_j = nvml.energy_j(watch->device);
    std::unique_lock lock(watch->mutex);
    watch->energy_begin_j = begin_j;
    for (bool last = false; !last;) {
      last = watch->stopping;
      lock.unlock();  // NVML is never called with the lock held
      const GpuSample now = nvml.sample(watch->device);
      const double energy = nvml.energy_j(watch->device);
      lock.lock();
      watch->samples.push_back(now);
      watch->energy_end_j = energy;
      if (!last) watch->changed.wait_for(lock, period, [&] { return watch->stopping; });
    }
    watch->running = false;
    watch->changed.notify_all();
  }
};

GpuMonitor::GpuMonitor(const std::string& pci_bus_id) {
  problem_ = Nvml::get().unavailable();
  if (!problem_.empty()) return;
  const Nvml::Device device = Nvml::get().find(pci_bus_id, problem_);
  if (!problem_.empty()) return;
  watch_ = std::make_shared<Watch>(device);
}

GpuMonitor::~GpuMonitor() {
  if (!watch_) return;
  const std::lock_guard lock(watch_->mutex);
  watch_->stopping = true;
  watch_->changed.notify_all();
}

void GpuMonitor::start() {
  if (!watch_) return;
  const Nvml::Device device = watch_->device;
  {
    const std::lock_guard lock(watch_->mutex);
    watch_->stopping = true;  // one that was not stopped
    watch_->changed.notify_all();
  }
  watch_ = std::make_shared<Watch>(device);
  watch_->running = true;
  try {
    std::thread(Watch::run, watch_).detach();
  } catch (const std::system_error&) {  // no more threads: a block without statistics
    watch_->running = false;
  }
}

GpuStatistics GpuMonitor::stop() {
  if (!watch_) return {};
  std::unique_lock lock(watch_->mutex);
  watch_->stopping = true;
  watch_->changed.notify_all();
  watch_->changed.wait_for(lock, patience, [&] { return !watch_->running; });
  GpuStatistics statistics = summarise(watch_->samples);
  statistics.energy_j = watch_->energy_end_j - watch_->energy_begin_j;
  const Nvml::Device device = watch_->device;
  const bool answered = !watch_->running && statistics.samples > 0;
  lock.unlock();
  if (answered) {
    statistics.max_possible_sm_clock_hz = Nvml::get().max_sm_clock_hz(device);
    statistics.possible_pcie_generation = Nvml::get().max_pcie_generation(device);
  }
  return statistics;
}

}  // namespace harness::machine
