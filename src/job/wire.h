#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace harness::job {

// Bytes between processes of one program on machines of one kind: plain values in host order, lengths as 64 bits.
//
// A message names its fields once, for both directions:
//   void each_field(MessageOf<Published> auto& m, auto& each) { each(m.program_hash, m.messages); }

template <class M, class Message>
concept MessageOf = std::same_as<std::remove_const_t<M>, Message>;

struct NoFields {
  template <class... Fields>
  void operator()(Fields&&...) const {}
};
template <class M>
concept HasFields = requires(M& m, NoFields& each) {
  each_field(m, each);
};

class WireWriter {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
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
  template <class... Choices>
  void put(const std::variant<Choices...>& value) {
    put(static_cast<std::uint64_t>(value.index()));
    std::visit([&](const auto& choice) { put(choice); }, value);
  }
  template <class T>
  void put(const T& value) {
    if constexpr (HasFields<const T>) {
      each_field(value, *this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>, "this type needs an each_field()");
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what WireWriter wrote, in the same order. Throws Error where the bytes end too early.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
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
      fail("a message between processes is damaged: {} elements cannot fit in {} bytes", size, rest_.size());
    values.resize(size);
    for (T& value : values) get(value);
  }
  template <class... Choices>
  void get(std::variant<Choices...>& value) {
    std::uint64_t index = 0;
    get(index);
    std::uint64_t candidate = 0;
    const auto take = [&]<class Choice>(Choice choice) {
      if (candidate++ != index) return;
      get(choice);
      value = std::move(choice);
    };
    (take(Choices{}), ...);
    if (index >= candidate) fail("a message between processes is damaged: choice {} of {}", index, candidate);
  }
  template <class T>
  void get(T& value) {
    if constexpr (HasFields<T>) {
      each_field(value, *this);
    } else {
      static_assert(std::is_trivially_copyable_v<T>, "this type needs an each_field()");
      std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    }
  }
  /// Throws Error if bytes are left over.
  void finish() const {
    if (!rest_.empty()) fail("a message between processes is damaged: {} bytes are left over", rest_.size());
  }

 private:
  std::string_view cut(std::uint64_t size) {
    if (size > rest_.size())
      fail("a message between processes is damaged: {} bytes are left where {} are expected", rest_.size(), size);
    const std::string_view head = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return head;
  }
  std::string_view rest_;
};

/// The whole of `bytes` as one message. Throws Error.
template <class Message>
Message decode_fields(std::string_view bytes) {
  WireReader in(bytes);
  Message message;
  in.get(message);
  in.finish();
  return message;
}

template <class Message>
std::string encode_fields(const Message& message) {
  WireWriter out;
  out.put(message);
  return out.take();
}

}  // namespace harness::job
