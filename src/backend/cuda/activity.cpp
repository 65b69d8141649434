#include "backend/cuda/profile.h"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/text.h"

namespace harness::cuda {
namespace {

// CUPTI writes the record versions of its own toolkit, which may differ from the header's. Versions only add fields at
// the end: kernel 9 (CUDA 12.0 to 12.9), 10 (13.0), 11 (13.2); memcpy 5 (to 12.6), 6; memset 4 throughout. So every
// record is read as the oldest of these, which all headers from 12.4 on declare.
using Kernel = CUpti_ActivityKernel9;
using Memcpy = CUpti_ActivityMemcpy5;
using Memset = CUpti_ActivityMemset4;
#if CUPTI_API_VERSION >= 130200
using HeaderKernel = CUpti_ActivityKernel11;
#elif CUPTI_API_VERSION >= 130000
using HeaderKernel = CUpti_ActivityKernel10;
#else
using HeaderKernel = CUpti_ActivityKernel9;
#endif
#if CUPTI_API_VERSION >= 26
using HeaderMemcpy = CUpti_ActivityMemcpy6;
#else
using HeaderMemcpy = CUpti_ActivityMemcpy5;
#endif
static_assert(offsetof(Kernel, start) == offsetof(HeaderKernel, start) &&
              offsetof(Kernel, correlationId) == offsetof(HeaderKernel, correlationId));
static_assert(offsetof(Memcpy, start) == offsetof(HeaderMemcpy, start) &&
              offsetof(Memcpy, correlationId) == offsetof(HeaderMemcpy, correlationId));

constexpr std::size_t buffer_bytes = 8u << 20, buffer_alignment = 8;
// Launches are API calls, and CUPTI attaches an external id only to calls that have a record of their own.
constexpr std::array kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                              CUPTI_ACTIVITY_KIND_MEMCPY,
                              CUPTI_ACTIVITY_KIND_MEMCPY2,
                              CUPTI_ACTIVITY_KIND_MEMSET,
                              CUPTI_ACTIVITY_KIND_RUNTIME,
                              CUPTI_ACTIVITY_KIND_DRIVER,
                              CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

struct Library {
  std::string problem;
  void* handle = open();
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = find("cuptiActivityRegisterCallbacks");
  decltype(&cuptiActivityEnable) enable = find("cuptiActivityEnable");
  decltype(&cuptiActivityDisable) disable = find("cuptiActivityDisable");
  decltype(&cuptiActivityFlushAll) flush = find("cuptiActivityFlushAll");
  decltype(&cuptiActivityGetNextRecord) next_record = find("cuptiActivityGetNextRecord");
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = find("cuptiActivityGetNumDroppedRecords");
  decltype(&cuptiActivityPushExternalCorrelationId) push = find("cuptiActivityPushExternalCorrelationId");
  decltype(&cuptiActivityPopExternalCorrelationId) pop = find("cuptiActivityPopExternalCorrelationId");
  decltype(&cuptiGetResultString) text = find("cuptiGetResultString");
  decltype(&cuptiGetVersion) version = find("cuptiGetVersion");
  bool registered = false;

  void* open() {
    std::string first_error;
    // Some packages install CUPTI outside the loader's search path.
    std::vector<std::string> names = {fmt::format("libcupti.so.{}", CUDA_VERSION / 1000), "libcupti.so.13",
                                      "libcupti.so.12", "libcupti.so"};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const char* home = std::getenv(variable))
        names.push_back(std::string(home) + "/extras/CUPTI/lib64/libcupti.so");
    }
    names.emplace_back("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so");
    for (const std::string& name : names) {
      if (void* opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
      if (const char* error = dlerror(); first_error.empty() && error != nullptr) first_error = error;
    }
    problem = fmt::format("CUPTI is not there: {}; it comes with the CUDA Toolkit (extras/CUPTI/lib64)", first_error);
    return nullptr;
  }

  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor): the pointer says which function it is
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol find(const char* name) {
    void* address = handle != nullptr ? dlsym(handle, name) : nullptr;
    if (address == nullptr && problem.empty()) problem = fmt::format("this CUPTI has no {}", name);
    return {address};
  }

  std::string describe(const char* call, CUptiResult result) const {
    const char* words = nullptr;
    text(result, &words);
    return fmt::format("{} failed: {} ({})", call, words != nullptr ? words : "unknown", static_cast<int>(result));
  }
};

Library& library() {
  static Library* const loaded = new Library;  // CUPTI's threads may outlive static destructors
  return *loaded;
}

// Records delivered by CUPTI's threads.
struct Collected {
  std::mutex mutex;
  bool wanted = false;
  std::vector<ActivityRecord> records;
  std::map<std::uint32_t, std::uint64_t> external;  // by correlation id
  std::atomic<std::uint64_t> dropped = 0;
};

Collected& collected() {
  static Collected* const all = new Collected;
  return *all;
}

template <class Record>
ActivityRecord read(const CUpti_Activity& activity) {
  const auto& from = reinterpret_cast<const Record&>(activity);
  return {.correlation_id = from.correlationId, .start_ns = from.start, .end_ns = from.end};
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *size = *buffer == nullptr ? 0 : buffer_bytes;
  *max_records = 0;  // as many as fit
}

void take(const CUpti_Activity& activity, Collected& into) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      into.records.push_back(read<Kernel>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      into.records.push_back(read<Memcpy>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      into.records.push_back(read<CUpti_ActivityMemcpyPtoP4>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      into.records.push_back(read<Memset>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& external = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(activity);
      into.external[external.correlationId] = external.externalId;
      break;
    }
    default:
      break;
  }
}

// C code calls this on a CUPTI thread, so no exception may escape.
void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  try {
    Collected& into = collected();
    const std::lock_guard lock(into.mutex);
    if (into.wanted) {
      CUpti_Activity* activity = nullptr;
      while (library().next_record(buffer, valid, &activity) == CUPTI_SUCCESS) take(*activity, into);
      std::size_t dropped = 0;
      if (library().dropped(context, stream, &dropped) == CUPTI_SUCCESS) into.dropped += dropped;
    }
  } catch (...) {
    ++collected().dropped;  // out of memory: stop() reports missing records
  }
  std::free(buffer);
}

// CUPTI of CUDA 13.0 may hang when recording of kernels is disabled (release notes of 13.0 Update 1, which fixed it).
// There it stays enabled, and its buffers are discarded.
bool may_hang(CUpti_ActivityKind disabled) {
  constexpr std::uint32_t first_of_13 = 130000;
  std::uint32_t version = 0;
  return disabled == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && library().version(&version) == CUPTI_SUCCESS &&
         version == first_of_13;
}

void disable_all() {
  for (const CUpti_ActivityKind kind : kinds) {
    if (!may_hang(kind)) library().disable(kind);
  }
}

// A plain flush delivers only buffers in which every record is complete: one late record holds back a whole buffer. A
// forced flush delivers every buffer; the device is already synchronized, so no record is pending
// (https://github.com/pytorch/kineto/pull/95). Returns CUPTI's first error.
CUptiResult flush_and_disable() {
  constexpr std::uint32_t forced = CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  CUptiResult problem = CUPTI_SUCCESS;
  const auto flush = [&](std::uint32_t flag) {
    const CUptiResult result = library().flush(flag);
    if (problem == CUPTI_SUCCESS) problem = result;
  };
  flush(0);
  disable_all();
  flush(forced);
  return problem;
}

}  // namespace

ActivityRecorder::~ActivityRecorder() {
  if (!recording_) return;
  disable_all();
  const std::lock_guard lock(collected().mutex);
  collected().wanted = false;
}

std::string ActivityRecorder::start() {
  Library& cupti = library();
  if (!cupti.problem.empty()) return cupti.problem;
  {
    const std::lock_guard lock(collected().mutex);
    if (collected().wanted) return "a recording is under way";
    collected().records.clear();
    collected().external.clear();
    collected().dropped = 0;
  }
  if (!cupti.registered) {
    const CUptiResult result = cupti.register_callbacks(give_buffer, take_buffer);
    if (result != CUPTI_SUCCESS) return cupti.describe("cuptiActivityRegisterCallbacks", result);
    cupti.registered = true;
  }
  cupti.flush(0);  // discards what an abandoned recording left
  for (const CUpti_ActivityKind kind : kinds) {
    const CUptiResult result = cupti.enable(kind);
    if (result == CUPTI_SUCCESS) continue;
    disable_all();
    return cupti.describe("cuptiActivityEnable", result);
  }
  const std::lock_guard lock(collected().mutex);
  collected().wanted = recording_ = true;
  return "";
}

void ActivityRecorder::push(std::uint64_t id) {
  if (recording_) library().push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void ActivityRecorder::pop() {
  std::uint64_t last = 0;
  if (recording_) library().pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

std::vector<ActivityRecord> ActivityRecorder::stop(std::string& problem) {
  problem.clear();
  if (!recording_) {
    problem = "no recording is under way";
    return {};
  }
  recording_ = false;
  const CUptiResult flushed = flush_and_disable();
  if (flushed != CUPTI_SUCCESS) problem = library().describe("cuptiActivityFlushAll", flushed);

  Collected& from = collected();
  const std::lock_guard lock(from.mutex);
  from.wanted = false;
  if (from.dropped > 0 && problem.empty()) problem = fmt::format("CUPTI dropped {} records", from.dropped.load());
  std::vector<ActivityRecord> records = std::move(from.records);
  // An incomplete record has no times.
  const std::size_t unfinished =
      std::erase_if(records, [](const ActivityRecord& r) { return r.start_ns == 0 || r.end_ns == 0; });
  if (unfinished > 0 && problem.empty()) problem = fmt::format("CUPTI gave {} records without times", unfinished);
  for (ActivityRecord& record : records) {
    const auto external = from.external.find(record.correlation_id);
    if (external != from.external.end()) record.external_id = external->second;
  }
  from.records.clear();
  from.external.clear();
  return records;
}

}  // namespace harness::cuda

#else  // built without CUPTI's header

namespace harness::cuda {

ActivityRecorder::~ActivityRecorder() = default;
std::string ActivityRecorder::start() {
  return "built without cupti.h, which comes with the CUDA Toolkit";
}
void ActivityRecorder::push(std::uint64_t) {}
void ActivityRecorder::pop() {}
std::vector<ActivityRecord> ActivityRecorder::stop(std::string& problem) {
  problem = "no recording is under way";
  return {};
}

}  // namespace harness::cuda

#endif
