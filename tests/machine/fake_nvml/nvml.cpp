#include <chrono>
#include <cstring>
#include <thread>

#include "fake_nvml.h"

// Declared anew, by https://docs.nvidia.com/deploy/nvml-api/, rather than shared with the code under test.
namespace {
FakeNvml state;
constexpr int not_found = 6, not_supported = 3;
}  // namespace

extern "C" {
FakeNvml* fake_nvml() {
  return &state;
}

int nvmlInit_v2() {
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == not_found ? "Not Found" : "Other";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &state;
  return index == 0 ? 0 : not_found;
}
int nvmlDeviceGetName(void*, char* name, unsigned) {
  std::strcpy(name, "NVIDIA Fake");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = &state;
  return std::strcmp(bus_id, "0000:18:00.0") == 0 ? 0 : not_found;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* gpu_and_memory) {
  if (!state.answers) return not_supported;
  gpu_and_memory[0] = state.samples++ == 0 ? 0 : 100;
  gpu_and_memory[1] = 50;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1500 : 7;  // 1: SM
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 7;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  while (state.hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *milliwatts = 400500;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 64 : 7;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = 60ull << 30;
  total_free_used[2] = 20ull << 30;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  *bits = 0x4;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = state.energy_mj += 500;
  return state.answers ? 0 : not_supported;
}
}
