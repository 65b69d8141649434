// Device and pinned memory, copies and fills.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "core.h"
#include "runtime.h"
#include "stream.h"

namespace harness::fake {
namespace {

constexpr std::size_t fence_bytes = 256;  // on both sides; blocks are aligned to 256 bytes and no more
constexpr unsigned char fence_byte = 0xA5;
constexpr unsigned char fresh_byte = 0xFF;     // NaN in every floating-point type
constexpr std::size_t kept_bytes = 128 << 20;  // of freed memory kept as NaN, to expose late readers

struct Block {
  unsigned char* raw = nullptr;
  std::size_t bytes = 0;
  std::size_t raw_bytes = 0;
  int device = -1;  // -1: pinned host memory
};

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> live;
  std::deque<Block> freed;
  std::size_t freed_bytes = 0;
  std::map<int, std::size_t> used;  // by device
};

Memory& memory();

void check_fences(const Block& block) {
  const unsigned char* user = block.raw + fence_bytes;
  const auto intact = [](const unsigned char* from, const unsigned char* to) {
    return std::all_of(from, to, [](unsigned char byte) { return byte == fence_byte; });
  };
  if (!intact(block.raw, user)) {
    complain(fmt::format("something wrote in front of the {} bytes at {}", block.bytes, fmt::ptr(user)));
  }
  if (!intact(user + block.bytes, block.raw + block.raw_bytes)) {
    complain(fmt::format("something wrote behind the {} bytes at {}", block.bytes, fmt::ptr(user)));
  }
}

void reset_memory() {
  const std::lock_guard lock(memory().mutex);
  for (auto& [address, block] : memory().live) std::free(block.raw);
  for (auto& block : memory().freed) std::free(block.raw);
  memory().live.clear();
  memory().freed.clear();
  memory().freed_bytes = 0;
  memory().used.clear();
}

void list_leaks(std::vector<std::string>& into) {
  const std::lock_guard lock(memory().mutex);
  for (const auto& [address, block] : memory().live) {
    check_fences(block);
    into.push_back(fmt::format("{} bytes of {} memory", block.bytes, block.device < 0 ? "pinned" : "device"));
  }
}

Memory& memory() {
  static Memory& all = *new Memory;
  static const bool known = take_part({3, reset_memory, list_leaks});
  (void)known;
  return all;
}

cudaError_t allocate(void** address, std::size_t bytes, int device, const char* call) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  if (const cudaError_t error = refuse_in_capture(call); error != cudaSuccess) return failed(error);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(memory().mutex);
  const bool fits =
      device >= 0 ? memory().used[device] + bytes <= settings().device_bytes : bytes <= settings().pinned_bytes;
  if (!fits) return failed(cudaErrorMemoryAllocation);
  Block block;
  block.bytes = bytes;
  block.device = device;
  block.raw_bytes = (bytes + 2 * fence_bytes + 511) / 512 * 512;
  block.raw = static_cast<unsigned char*>(std::aligned_alloc(512, block.raw_bytes));
  if (block.raw == nullptr) return failed(cudaErrorMemoryAllocation);
  std::memset(block.raw, fence_byte, block.raw_bytes);
  unsigned char* user = block.raw + fence_bytes;
  std::memset(user, fresh_byte, bytes);
  memory().live.emplace(reinterpret_cast<std::uintptr_t>(user), block);
  if (device >= 0) memory().used[device] += bytes;
  *address = user;
  return cudaSuccess;
}

cudaError_t release(void* address, bool pinned, const char* call) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t error = refuse_in_capture(call); error != cudaSuccess) return failed(error);
  int device = -1;
  {
    const std::lock_guard lock(memory().mutex);
    const auto found = memory().live.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == memory().live.end() || (found->second.device < 0) != pinned) {
      return failed(cudaErrorInvalidValue,
                    fmt::format("{}: {} is not a live allocation of that kind", call, fmt::ptr(address)));
    }
    device = pinned ? current_device() : found->second.device;
  }
  wait_for_device(device);  // as cudaFree does
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().live.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == memory().live.end()) return failed(cudaErrorInvalidValue, fmt::format("{}: freed twice", call));
  const Block block = found->second;
  memory().live.erase(found);
  check_fences(block);
  if (!pinned) memory().used[device] -= block.bytes;
  std::memset(address, fresh_byte, block.bytes);
  memory().freed.push_back(block);
  memory().freed_bytes += block.bytes;
  while (memory().freed_bytes > kept_bytes) {
    memory().freed_bytes -= memory().freed.front().bytes;
    std::free(memory().freed.front().raw);
    memory().freed.pop_front();
  }
  return cudaSuccess;
}

// Returns the live block that contains `address`, fences excluded; null if none does.
const Block* block_of(std::uintptr_t address) {
  auto after = memory().live.upper_bound(address);
  if (after == memory().live.begin()) return nullptr;
  --after;
  return address < after->first + after->second.bytes ? &after->second : nullptr;
}

// -1: not device memory.
int device_of(const void* address) {
  const std::lock_guard lock(memory().mutex);
  const Block* block = block_of(reinterpret_cast<std::uintptr_t>(address));
  return block == nullptr ? -1 : block->device;
}

bool is_host(Place place) {
  return place == Place::pinned || place == Place::pageable;
}

// Only the kinds of copy that the backend uses are supported.
bool fits(cudaMemcpyKind kind, Place to, Place from) {
  if (kind == cudaMemcpyHostToDevice) return to == Place::device && is_host(from);
  if (kind == cudaMemcpyDeviceToHost) return is_host(to) && from == Place::device;
  return kind == cudaMemcpyDeviceToDevice && to == Place::device && from == Place::device;
}

// The duration of a copy by the rates in the settings; 0 without a rate.
std::int64_t duration_ns(std::size_t bytes, Place to, Place from) {
  double rate = 0;
  if (to == Place::device && from == Place::pinned) rate = settings().copy_in_bytes_per_s;
  if (to == Place::pinned && from == Place::device) rate = settings().copy_out_bytes_per_s;
  return rate > 0 ? static_cast<std::int64_t>(static_cast<double>(bytes) / rate * 1e9) : 0;
}

// Checks again when the copy runs: memory that was valid at the call may have been freed since.
void copy_checked(void* to, const void* from, std::size_t bytes, Place to_place, Place from_place, int device) {
  if (place(to, bytes) != to_place || place(from, bytes) != from_place) {
    break_device(
        device, cudaErrorIllegalAddress,
        fmt::format("a copy ran after its memory was freed: to {}, from {}", where(to, bytes), where(from, bytes)));
    return;
  }
  std::memcpy(to, from, bytes);
  pass_ns(duration_ns(bytes, to_place, from_place));
}

}  // namespace

Place place(const void* address, std::size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (const Block* block = block_of(first)) {
    const auto start = reinterpret_cast<std::uintptr_t>(block->raw) + fence_bytes;
    if (first + bytes > start + block->bytes) return Place::broken;
    return block->device < 0 ? Place::pinned : Place::device;
  }
  const auto touches = [&](const Block& block) {
    const auto start = reinterpret_cast<std::uintptr_t>(block.raw);
    return first < start + block.raw_bytes && first + std::max<std::size_t>(bytes, 1) > start;
  };
  const auto next = memory().live.lower_bound(first);
  if (next != memory().live.end() && touches(next->second)) return Place::broken;
  if (next != memory().live.begin() && touches(std::prev(next)->second)) return Place::broken;
  const bool freed = std::any_of(memory().freed.begin(), memory().freed.end(), touches);
  return freed ? Place::broken : Place::pageable;
}

bool on_device(const void* address, std::size_t bytes, int device) {
  return place(address, bytes) == Place::device && (device < 0 || device_of(address) == device);
}

std::string where(const void* address, std::size_t bytes) {
  switch (place(address, bytes)) {
    case Place::device:
      return fmt::format("{} bytes at {} are memory of device {}", bytes, fmt::ptr(address), device_of(address));
    case Place::pinned:
      return fmt::format("{} bytes at {} are pinned host memory", bytes, fmt::ptr(address));
    case Place::pageable:
      return fmt::format("{} bytes at {} are not device memory", bytes, fmt::ptr(address));
    case Place::broken:
      break;
  }
  return fmt::format("{} bytes at {} reach out of their allocation, or it was freed", bytes, fmt::ptr(address));
}

}  // namespace harness::fake

using namespace harness::fake;

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return allocate(address, bytes, current_device(), "cudaMalloc");
}
cudaError_t cudaFree(void* address) {
  return release(address, false, "cudaFree");
}
cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return allocate(address, bytes, -1, "cudaMallocHost");
}
cudaError_t cudaFreeHost(void* address) {
  return release(address, true, "cudaFreeHost");
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const std::lock_guard lock(memory().mutex);
  *total_bytes = settings().device_bytes;
  *free_bytes = settings().device_bytes - memory().used[current_device()];
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  constexpr const char* call = "cudaMemcpyAsync";
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(handle, call);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const Place to_place = place(to, bytes);
  const Place from_place = place(from, bytes);
  if (to == nullptr || from == nullptr || !fits(kind, to_place, from_place)) {
    return failed(cudaErrorInvalidValue, fmt::format("{} (kind {}): to {}, from {}", call, static_cast<int>(kind),
                                                     where(to, bytes), where(from, bytes)));
  }
  const auto* first = static_cast<const char*>(from);
  if (first < static_cast<char*>(to) + bytes && static_cast<char*>(to) < first + bytes) {
    return failed(cudaErrorInvalidValue, fmt::format("{}: source and destination overlap", call));
  }
  bool capturing = false;
  {
    const std::lock_guard lock(runtime_mutex());
    capturing = stream->capture != nullptr;
  }
  const int device = stream->device;
  if (from_place == Place::pageable && to_place == Place::device && !capturing) {
    std::vector<char> staged(first, first + bytes);  // as the driver does: the caller may reuse its memory
    return give(stream, "copy", [=, staged = std::move(staged)] {
      if (place(to, bytes) == Place::device) {
        std::memcpy(to, staged.data(), bytes);
      } else {
        break_device(device, cudaErrorIllegalAddress, fmt::format("a copy ran late: to {}", where(to, bytes)));
      }
    });
  }
  const auto work = [=] { copy_checked(to, from, bytes, to_place, from_place, device); };
  const cudaError_t error = give(stream, "copy", work);
  if (error != cudaSuccess || capturing) return error;
  // As documented, a copy into pageable memory is complete when the call returns.
  if (to_place != Place::pageable) return cudaSuccess;
  stream->now().wait();
  return failed(device_error());
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t handle) {
  constexpr const char* call = "cudaMemsetAsync";
  if (const cudaError_t error = device_error(); error != cudaSuccess) return failed(error);
  const auto stream = find_stream(handle, call);
  if (!stream) return failed(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const Place to_place = place(to, bytes);
  if (to_place == Place::pageable || to_place == Place::broken) {
    return failed(cudaErrorInvalidValue, fmt::format("{}: {}", call, where(to, bytes)));
  }
  const auto work = [=, device = stream->device] {
    if (place(to, bytes) == to_place) {
      std::memset(to, value, bytes);
    } else {
      break_device(device, cudaErrorIllegalAddress, fmt::format("a fill ran late: {}", where(to, bytes)));
    }
  };
  return give(stream, "fill", work);
}
