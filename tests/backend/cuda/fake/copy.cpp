// The runtime's copies and fills.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "stream.h"

namespace harness::fake {
namespace {

bool is_host(Place place) {
  return place == Place::pinned || place == Place::pageable;
}

// Kinds that the backend has no use of are not done here.
bool fits(cudaMemcpyKind kind, Place to, Place from) {
  if (kind == cudaMemcpyHostToDevice) return to == Place::device && is_host(from);
  if (kind == cudaMemcpyDeviceToHost) return is_host(to) && from == Place::device;
  return kind == cudaMemcpyDeviceToDevice && to == Place::device && from == Place::device;
}

// How long the settings say that a copy takes.
std::int64_t duration_ns(std::size_t bytes, Place to, Place from) {
  double rate = 0;
  if (to == Place::device && from == Place::pinned) rate = settings().copy_in_bytes_per_s;
  if (to == Place::pinned && from == Place::device) rate = settings().copy_out_bytes_per_s;
  return rate > 0 ? static_cast<std::int64_t>(static_cast<double>(bytes) / rate * 1e9) : 0;
}

// Memory that was right at the call may have been freed since.
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
}  // namespace harness::fake

using namespace harness::fake;

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
    std::vector<char> staged(first, first + bytes);  // as a driver does, so the caller may reuse its memory
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
  // Documented: into pageable memory a copy is done when the call returns.
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
