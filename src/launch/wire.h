#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace harness {

// Bytes between processes of one program on machines of one kind: plain values in host order, lengths as 64 bits.

class WireWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  template <class A, class B>
  void put(const std::pair<A, B>& both) {
    put(both.first);
    put(both.second);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what WireWriter wrote, in the same order. Throws Error where the bytes end too early.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void get(T& value) {
    const std::string_view raw = cut(sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
  }
  void get(std::string& text) {
    std::uint64_t size = 0;
    get(size);
    text = cut(size);
  }
  template <class A, class B>
  void get(std::pair<A, B>& both) {
    get(both.first);
    get(both.second);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::uint64_t size = 0;
    get(size);
    if (size > rest_.size())
      fail("a message between processes is damaged: {} elements in {} bytes", size, rest_.size());
    values.resize(size);
    for (T& value : values) get(value);
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view cut(std::uint64_t size) {
    if (size > rest_.size()) fail("a message between processes is damaged: {} bytes of {}", rest_.size(), size);
    const std::string_view head = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return head;
  }
  std::string_view rest_;
};

}  // namespace harness
