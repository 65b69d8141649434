#pragma once

#include <memory>
#include <string>

#include "machine/conditions.h"

namespace harness::machine {

/// Samples one GPU through Nvml on a thread of its own, ten times a second. Nothing here throws for want of a driver.
class GpuMonitor {
 public:
  /// pci_bus_id as CUDA gives it: "0000:18:00.0".
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();  // tells the thread to end and does not wait for it
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// "" when this GPU can be watched, else why not.
  const std::string& unavailable() const { return problem_; }
  /// Begins to sample; forgets what was sampled before.
  void start();
  /// Ends the sampling, takes a last sample and returns the statistics since start(). Waits for the thread, but no
  /// longer than two seconds: a driver that hangs must not hang us. All NaN when unavailable or not started.
  GpuStatistics stop();

 private:
  struct Watch;
  std::string problem_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace harness::machine
