#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "store/hdf5_file.h"

// How a plain struct becomes a row of a table and back. columns.h names every column once, in a function template over
// a visitor; the three visitors here ask what the columns are, write a row and read one.
namespace harness::store::hdf5 {

/// How long a text column is.
struct TextSize {
  std::size_t bytes = 0;  // 0: as long as the longest text known when the file is made
  bool stretch = false;   // takes what is missing to make the row a power of two, so that no row crosses a page
};

inline constexpr TextSize word_size{12, false};  // of an enum's names

class DeclareColumns {
 public:
  void begin_row() { next_ = 0; }
  void key(const char* name) { column(name, Kind::int32, {}, 0); }
  template <class T>
  void number(const char* name, const T&) {
    column(name, kind_of<T>(), {}, 0);
  }
  void text(std::string_view name, const std::string& value, TextSize size = {}) {
    column(name, Kind::text, size, value.size());
  }
  template <class Enum>
  void word(const char* name, const Enum&, Enum /*last*/) {
    column(name, Kind::text, word_size, 0);
  }

  Element element() const {
    std::size_t total = 0;
    for (const auto& c : columns_) total += c.bytes;
    Element element;
    for (const auto& c : columns_) {
      const std::size_t missing = c.stretch ? std::bit_ceil(total) - total : 0;
      if (element.find(c.name) != nullptr) fail("a result table would have two columns named '{}'", c.name);
      element.add(c.name, c.kind, c.bytes + missing);
    }
    return element;
  }

 private:
  struct Column {
    std::string name;
    Kind kind;
    std::size_t bytes;
    bool stretch;
  };
  void column(std::string_view name, Kind kind, TextSize size, std::size_t length) {
    if (next_ == columns_.size()) {
      columns_.push_back({std::string(name), kind, Element::of(kind, size.bytes).bytes, size.stretch});
    }
    if (kind == Kind::text && size.bytes == 0) columns_[next_].bytes = std::max(columns_[next_].bytes, length);
    ++next_;
  }
  std::vector<Column> columns_;
  std::size_t next_ = 0;
};

/// `text` cut to `bytes` at a character's end, with "…" where something is missing.
std::string shortened(std::string_view text, std::size_t bytes);

class WriteRow {
 public:
  WriteRow(const Element& element, std::int64_t index, char* row) : element_(element), index_(index), row_(row) {}
  void key(const char* name) { number(name, static_cast<std::int32_t>(index_)); }
  template <class T>
  void number(const char*, const T& value) {
    std::memcpy(row_ + take().offset, &value, sizeof(T));
  }
  void text(std::string_view name, const std::string& value, TextSize size = {}) {
    const Field& field = take();
    if (value.size() > field.bytes && size.bytes == 0) {
      fail("column {} holds {} bytes, too few for \"{}\"", name, field.bytes, value);
    }
    const std::string kept = shortened(value, field.bytes);
    std::memset(row_ + field.offset, 0, field.bytes);
    std::memcpy(row_ + field.offset, kept.data(), kept.size());
  }
  template <class Enum>
  void word(const char* column, const Enum& value, Enum /*last*/) {
    text(column, name_of(value), word_size);
  }

 private:
  const Field& take() { return element_.fields[next_++]; }
  const Element& element_;
  std::int64_t index_;
  char* row_;
  std::size_t next_ = 0;
};

class ReadRow {
 public:
  ReadRow(const Element& element, const char* row) : element_(element), row_(row) {}
  void key(const char*) { take(); }
  template <class T>
  void number(const char*, T& value) {
    std::memcpy(&value, row_ + take().offset, sizeof(T));
  }
  void text(std::string_view, std::string& value, TextSize = {}) {
    const Field& field = take();
    value.assign(row_ + field.offset, strnlen(row_ + field.offset, field.bytes));
  }
  template <class Enum>
  void word(const char* column, Enum& value, Enum last) {
    std::string found;
    text(column, found);
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      value = static_cast<Enum>(i);
      if (found == name_of(value)) return;
    }
    fail("column {} has the unknown word \"{}\"", column, found);
  }

 private:
  const Field& take() { return element_.fields[next_++]; }
  const Element& element_;
  const char* row_;
  std::size_t next_ = 0;
};

}  // namespace harness::store::hdf5
