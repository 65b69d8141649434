#include <chrono>
#include <cstring>
#include <thread>
#include <type_traits>

#include "fake_nvml.h"

// Declared again from https://docs.nvidia.com/deploy/nvml-api/, not shared with the code under test.
namespace {
FakeNvml state;
constexpr int not_found = 6, not_supported = 3;

template <class T>
int tell(T* to, std::type_identity_t<T> value) {
  *to = value;
  return state.answers ? 0 : not_supported;
}
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
  return tell(mhz, type == 1 ? 1500 : 7);  // 1: SM
}
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* mhz) {
  return tell(mhz, type == 1 ? 1980 : 7);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  while (state.hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return tell(milliwatts, 400500);
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  return tell(celsius, sensor == 0 ? 64 : 7);
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = 60ull << 30;
  total_free_used[2] = 20ull << 30;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  return tell(bits, 0x4);
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  return tell(millijoules, state.energy_mj += 500);
}

int nvmlSystemGetDriverVersion(char* version, unsigned) {
  std::strcpy(version, "570.86.15");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void*, void* info) {
  struct {
    char old_bus_id[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
  } place = {"0000:18:00.0", 0, 0x18, 0, 0x233010de, 0, "00000000:18:00.0"};
  std::memcpy(info, &place, sizeof place);
  return 0;
}
int nvmlDeviceGetPersistenceMode(void*, int* mode) {
  return tell(mode, 1);
}
int nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* later) {
  *now = 0;
  return tell(later, 1);
}
int nvmlDeviceGetTotalEccErrors(void*, int type, int counter, unsigned long long* errors) {
  return tell(errors, type == 1 && counter == 0 ? 5 : 777);  // uncorrected errors since the driver was loaded
}
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = 7;
  *uncorrected = 2;
  *pending = 1;
  return tell(failed, 0);
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return tell(milliwatts, 500000);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* milliwatts) {
  return tell(milliwatts, 700000);
}
int nvmlDeviceGetBAR1MemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 128ull << 30;
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  return tell(lanes, 8);
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* lanes) {
  return tell(lanes, 16);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* room) {
  constexpr int insufficient_size = 7;
  *count = 2;
  return room == nullptr ? insufficient_size : 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* active) {
  *active = link == 1 ? 0 : 1;
  return state.answers && link < 3 ? 0 : not_supported;
}
int nvmlDeviceGetGpuFabricInfoV(void*, void* info) {
  struct {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
  } fabric;
  std::memcpy(&fabric, info, sizeof fabric);
  constexpr int version_mismatch = 25;
  if (fabric.version != (sizeof fabric | 2u << 24)) return version_mismatch;
  fabric.state = 3;
  fabric.health = 0x9;  // degraded bandwidth, no route recovery
  std::memcpy(info, &fabric, sizeof fabric);
  return state.answers ? 0 : not_supported;
}
int nvmlDeviceGetNvLinkErrorCounter(void*, unsigned link, int counter, unsigned long long* count) {
  *count = 10 * counter + link;  // 0 replays, 1 recoveries, 2 flit CRC errors
  return state.answers && link < 3 ? 0 : not_supported;
}
int nvmlDeviceGetFieldValues(void*, int count, void* values) {
  struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    unsigned long long value;
  } asked;
  std::memcpy(&asked, values, sizeof asked);
  asked.result = asked.field == 230 && state.answers ? 0 : not_supported;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
  asked.value = 2;
  std::memcpy(values, &asked, sizeof asked);
  return count == 1 ? 0 : not_supported;
}
}
