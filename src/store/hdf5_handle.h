#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace harness::store::hdf5 {

/// An HDF5 identifier of any kind, closed when it goes. hdf5.h itself stays in the hdf5_*.cpp files.
class Handle {
 public:
  Handle() = default;
  /// Takes over an identifier as the library returned it; throws Error, naming `doing`, if it is not valid.
  Handle(std::int64_t id, std::string_view doing);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  std::int64_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Closes now and throws Error if that fails: the last chance for buffered writes to fail.
  void close(std::string_view doing);

 private:
  std::int64_t id_ = -1;
};

/// Throws Error if `result` is negative: "DOING failed: " and what the system said, or "truncated file".
std::int64_t check(std::int64_t result, std::string_view doing);

/// Starts the library and keeps it from printing its error stack. Cheap; called before the first use.
void initialise();

}  // namespace harness::store::hdf5
