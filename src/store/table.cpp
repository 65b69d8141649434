#include "store/columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Field;
using hdf5::File;
using hdf5::Kind;

// Rows that are read and rows that are written have their members in the same places.
const void* member_of(const Column& column, const void* row) {
  return column.in(const_cast<void*>(row));
}

/// Numbers of one sort are converted where files differ; nothing else is.
enum class Sort : std::uint8_t { text, whole, real };
Sort sort_of(Kind kind) {
  if (kind == Kind::text) return Sort::text;
  return kind == Kind::float32 || kind == Kind::float64 ? Sort::real : Sort::whole;
}

std::size_t length_for(const Column& column, RowSpan rows) {
  std::size_t length = column.size.bytes;
  if (length > 0 || column.member != Member::text) return length;
  for (std::size_t i = 0; i < rows.count; ++i) length = std::max(length, text_in(column, rows.at(i)).size());
  return length;
}

void write_padded(const std::string& text, std::size_t bytes, char* to) {
  const std::string kept = shortened(text, bytes);
  std::fill(std::copy(kept.begin(), kept.end(), to), to + bytes, '\0');
}

void encode_member(const Column& column, const Field& field, const void* row, char* to) {
  void* const member = column.in(const_cast<void*>(row));
  if (column.member == Member::flag) {
    const std::int32_t value = *static_cast<const bool*>(member) ? 1 : 0;
    std::memcpy(to, &value, sizeof value);
    return;
  }
  if (field.kind != Kind::text) {
    std::memcpy(to, member, field.bytes);
    return;
  }
  const std::string text = text_in(column, row);
  if (text.size() > field.bytes && column.size.bytes == 0) {
    fail("column {} holds {} bytes, too few for \"{}\"", column.name, field.bytes, text);
  }
  write_padded(text, field.bytes, to);
}

}  // namespace

hdf5::Kind Column::kind() const {
  switch (member) {
    case Member::key:
    case Member::int32:
    case Member::flag:
      return hdf5::Kind::int32;
    case Member::int64:
      return hdf5::Kind::int64;
    case Member::uint64:
      return hdf5::Kind::uint64;
    case Member::real:
      return hdf5::Kind::float64;
    case Member::text:
    case Member::word:
      break;
  }
  return hdf5::Kind::text;
}

std::string text_in(const Column& column, const void* row) {
  const void* const member = member_of(column, row);
  if (column.member == Member::text) return *static_cast<const std::string*>(member);
  return column.words.at(*static_cast<const std::uint8_t*>(member));
}

void set_text(const Column& column, void* row, std::string text) {
  void* const member = column.in(row);
  if (column.member == Member::text) {
    *static_cast<std::string*>(member) = std::move(text);
    return;
  }
  const auto found = std::ranges::find(column.words, text);
  if (found == column.words.end()) {
    fail("{} has the unknown word {}; possible here: {}", column.name, quote(text), join(column.words, ", "));
  }
  const auto value = static_cast<std::uint8_t>(found - column.words.begin());
  std::copy_n(&value, 1, static_cast<std::uint8_t*>(member));
}

void require_within(std::string_view what, double value, const Bounds& bounds, const Counts& counts) {
  if (std::isnan(value) && bounds.unknown) return;
  const double high = bounds.high + (bounds.count == nullptr ? 0 : static_cast<double>(counts.*bounds.count));
  if (value >= bounds.low && value <= high) return;
  fail("{} is {}; possible here is {} to {}", what, value, bounds.low, high);
}

void require_within_bounds(const ColumnList& columns, std::string_view sort, std::string_view path, RowSpan rows,
                           const Counts& counts) {
  for (const Column& column : columns) {
    const std::string what = fmt::format("{} {} of {}", sort, column.name, path);
    const auto require_each = [&]<class Number>(Number /*type*/) {
      for (std::size_t i = 0; i < rows.count; ++i) {
        const Number value = *static_cast<const Number*>(member_of(column, rows.at(i)));
        require_within(what, static_cast<double>(value), column.bounds, counts);
      }
    };
    if (column.member == Member::int32) require_each(std::int32_t{});
    if (column.member == Member::int64) require_each(std::int64_t{});
    if (column.member == Member::real) require_each(double{});
  }
}

RowFormat format_for(const ColumnList& columns, RowSpan rows) {
  std::vector<std::size_t> lengths;
  Element plain;
  for (const Column& column : columns) {
    lengths.push_back(length_for(column, rows));
    plain.add(column.name, column.kind(), lengths.back());
  }
  RowFormat format{{}, columns};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::size_t missing = columns[i].size.stretch ? std::bit_ceil(plain.bytes) - plain.bytes : 0;
    if (format.element.find(columns[i].name) != nullptr) {
      fail("a result table would have two columns named '{}'", columns[i].name);
    }
    format.element.add(columns[i].name, columns[i].kind(), lengths[i] + missing);
  }
  return format;
}

RowFormat format_in(const Dataset& table, const ColumnList& columns) {
  const Element found = table.element();
  RowFormat format;
  for (const Column& column : columns) {
    const Field* const there = found.find(column.name);
    if (there == nullptr && column.optional) continue;
    if (there == nullptr) fail("table {} has no column '{}'", table.path(), column.name);
    if (sort_of(there->kind) != sort_of(column.kind())) {
      fail("column '{}' of table {} has an unexpected type", column.name, table.path());
    }
    format.element.add(column.name, column.kind(), there->bytes);
    format.columns.push_back(column);
  }
  return format;
}

std::vector<char> encode(const RowFormat& format, RowSpan rows, std::size_t first_number) {
  std::vector<char> bytes(format.element.bytes * rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) {
    for (std::size_t k = 0; k < format.columns.size(); ++k) {
      const Field& field = format.element.fields[k];
      char* const to = bytes.data() + i * format.element.bytes + field.offset;
      if (format.columns[k].member != Member::key) {
        encode_member(format.columns[k], field, rows.at(i), to);
        continue;
      }
      const auto number = static_cast<std::int32_t>(first_number + i);
      std::memcpy(to, &number, sizeof number);
    }
  }
  return bytes;
}

void decode(const RowFormat& format, const char* bytes, void* row) {
  for (std::size_t k = 0; k < format.columns.size(); ++k) {
    const Column& column = format.columns[k];
    const Field& field = format.element.fields[k];
    const char* const from = bytes + field.offset;
    if (column.member == Member::key) continue;
    if (field.kind == Kind::text) {
      set_text(column, row, std::string(from, strnlen(from, field.bytes)));
    } else if (column.member == Member::flag) {
      std::int32_t value = 0;
      std::memcpy(&value, from, sizeof value);
      *static_cast<bool*>(column.in(row)) = value != 0;
    } else {
      std::memcpy(column.in(row), from, field.bytes);
    }
  }
}

void write_rows(Dataset& table, const RowFormat& format, RowSpan rows, std::size_t first) {
  const std::vector<char> bytes = encode(format, rows, first);
  table.write(format.element, first, rows.count, bytes.data());
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  static constexpr std::string_view mark = "…";
  const std::size_t kept = whole_characters(text, bytes < mark.size() ? bytes : bytes - mark.size());
  return std::string(text.substr(0, kept)).append(bytes < mark.size() ? "" : mark);
}

namespace hdf5 {
namespace {

std::vector<std::string> read_all_texts(const Dataset& dataset) {
  const Element element = dataset.element();
  if (element.table || element.fields[0].kind != Kind::text) fail("{} does not hold text", dataset.path());
  const std::vector<char> bytes = dataset.read(element, 0, dataset.rows());
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size(); at += element.bytes) {
    texts.emplace_back(bytes.data() + at, strnlen(bytes.data() + at, element.bytes));
  }
  return texts;
}

}  // namespace

Dataset create_texts(File& file, const std::string& path, const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, longest), {texts.size()}, nullptr);
  for (std::size_t i = 0; i < texts.size(); ++i) write_text(dataset, i, texts[i]);
  return dataset;
}

Dataset create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes) {
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, std::max(bytes, text.size())), {}, nullptr);
  write_text(dataset, 0, text);
  return dataset;
}

void write_text(Dataset& dataset, std::uint64_t row, const std::string& text) {
  const Element element = dataset.element();
  std::vector<char> bytes(element.bytes);
  write_padded(text, element.bytes, bytes.data());
  dataset.write(element, row, 1, bytes.data());
}

std::vector<std::string> read_texts(const File& file, const std::string& path) {
  return read_all_texts(file.dataset(path, 1));
}

std::string read_text(const File& file, const std::string& path) {
  return read_all_texts(file.dataset(path, 0)).at(0);
}

}  // namespace hdf5
}  // namespace harness::store
