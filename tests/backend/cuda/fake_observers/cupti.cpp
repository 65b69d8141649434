#include <cupti.h>

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "fake.h"

// Records have the newest version in the header, as the library of that toolkit writes them.
#if CUPTI_API_VERSION >= 130200
using Kernel = CUpti_ActivityKernel11;
#elif CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
#else
using Kernel = CUpti_ActivityKernel9;
#endif
#if CUPTI_API_VERSION >= 26
using Memcpy = CUpti_ActivityMemcpy6;
#else
using Memcpy = CUpti_ActivityMemcpy5;
#endif

namespace {
struct Launch {
  int kind;
  std::uint32_t correlation;
  std::uint64_t start_ns, end_ns, external;
};
FakeCupti state;
std::mutex mutex;  // guards the variables below: ranks are threads
std::vector<Launch> launches;
std::vector<std::uint64_t> ids;
std::uint32_t next_correlation = 100;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;

template <class Record>
std::size_t write(std::uint8_t* at, CUpti_ActivityKind kind, const Launch& launch) {
  Record record;
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  record.correlationId = launch.correlation;
  record.start = launch.start_ns;
  record.end = launch.end_ns;
  std::memcpy(at, &record, sizeof record);
  return sizeof record;
}

std::size_t size_of(const std::uint8_t* at) {
  switch (reinterpret_cast<const CUpti_Activity*>(at)->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(Kernel);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(Memcpy);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}
}  // namespace

extern "C" {
FakeCupti* fake_cupti() {
  return &state;
}
void fake_launch(int kind, std::uint64_t start_ns, std::uint64_t end_ns) {
  const std::lock_guard lock(mutex);
  launches.push_back({kind, next_correlation++, start_ns, end_ns, ids.empty() ? 0 : ids.back()});
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                                    CUpti_BuffersCallbackCompleteFunc c) {
  request = r;
  complete = c;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == state.fail_enable_kind) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  ++state.enabled;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind) {
  if (state.enabled > 0) --state.enabled;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t flag) {
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  const bool running = state.synchronized != nullptr && !state.synchronized();
  if (state.silent || ((state.late || running) && !forced)) return CUPTI_SUCCESS;
  std::vector<Launch> launched;
  {
    const std::lock_guard lock(mutex);
    launched = std::exchange(launches, {});
  }
  if (launched.empty()) return CUPTI_SUCCESS;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, maximum = 0, used = 0;
  request(&buffer, &size, &maximum);
  for (Launch launch : launched) {
    if (running) launch.start_ns = launch.end_ns = 0;
    if (launch.external != 0) {
      CUpti_ActivityExternalCorrelation external{};
      external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
      external.externalId = launch.external;
      external.correlationId = launch.correlation;
      std::memcpy(buffer + used, &external, sizeof external);
      used += sizeof external;
    }
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    api.correlationId = launch.correlation;
    std::memcpy(buffer + used, &api, sizeof api);
    used += sizeof api;
    if (launch.kind == 0) used += write<Kernel>(buffer + used, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, launch);
    if (launch.kind == 1) used += write<Memcpy>(buffer + used, CUPTI_ACTIVITY_KIND_MEMCPY, launch);
    if (launch.kind == 2) used += write<CUpti_ActivityMemcpyPtoP4>(buffer + used, CUPTI_ACTIVITY_KIND_MEMCPY2, launch);
    if (launch.kind == 3) used += write<CUpti_ActivityMemset4>(buffer + used, CUPTI_ACTIVITY_KIND_MEMSET, launch);
  }
  complete(nullptr, 0, buffer, size, used);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record);
  if (*record != nullptr) next += size_of(next);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = state.dropped;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t id) {
  {
    const std::lock_guard lock(mutex);
    ids.push_back(id);
  }
  if (state.kernel_per_push) fake_launch(0, 10 * id, 10 * id + 5);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t* last) {
  const std::lock_guard lock(mutex);
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  *version = state.version;
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "other";
  return CUPTI_SUCCESS;
}
}
