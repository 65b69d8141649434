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

/// Numbers of one sort are converted if file and memory differ; nothing else is.
enum class Sort : std::uint8_t { text, whole, real };
Sort sort_of(Kind kind) {
  if (kind == Kind::text) return Sort::text;
  return kind == Kind::float32 || kind == Kind::float64 ? Sort::real : Sort::whole;
}

std::size_t length_for(const Column& column, RowSpan rows) {
  std::size_t length = column.size.bytes;
  if (length > 0 || column.kind != Kind::text) return length;
  for (std::size_t i = 0; i < rows.count; ++i)
    length = std::max(length, std::get<std::string>(column.get(rows.at(i))).size());
  return length;
}

void write_padded(const std::string& text, std::size_t bytes, char* to) {
  const std::string kept = shortened(text, bytes);
  std::fill(std::copy(kept.begin(), kept.end(), to), to + bytes, '\0');
}

template <class Number>
void put(Number number, char* to) {
  std::memcpy(to, &number, sizeof number);
}

void encode_value(const Column& column, const Field& field, const Value& value, char* to) {
  if (const auto* real = std::get_if<double>(&value)) return put(*real, to);
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return field.kind == Kind::int32 ? put(static_cast<std::int32_t>(*whole), to) : put(*whole, to);
  const std::string& text = std::get<std::string>(value);
  if (text.size() > field.bytes && column.size.bytes == 0) {
    fail("column {} holds {} bytes, too few for \"{}\"", column.name, field.bytes, text);
  }
  write_padded(text, field.bytes, to);
}

Value decode_value(const Field& field, const char* from) {
  const auto number = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  if (field.kind == Kind::text) return std::string(from, strnlen(from, field.bytes));
  if (field.kind == Kind::float64) return number(double{});
  return field.kind == Kind::int32 ? number(std::int32_t{}) : number(std::int64_t{});
}

std::vector<std::string> read_all_texts(const Dataset& dataset) {
  dataset.require_kind(Kind::text);
  const Element& element = dataset.element();
  const std::vector<char> bytes = dataset.read(element, 0, dataset.rows());
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size(); at += element.bytes) {
    texts.emplace_back(bytes.data() + at, strnlen(bytes.data() + at, element.bytes));
  }
  return texts;
}

}  // namespace

std::int64_t number_of_word(const std::string& column, const std::string& word, const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end())
    fail("{} has the unknown word {}; possible here: {}", column, quote(word), join(words, ", "));
  return found - words.begin();
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
    if (!column.get || column.kind == Kind::text || column.kind == Kind::uint64) continue;
    const std::string what = fmt::format("{} {} of {}", sort, column.name, path);
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Value value = column.get(rows.at(i));
      const auto* whole = std::get_if<std::int64_t>(&value);
      require_within(what, whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value), column.bounds,
                     counts);
    }
  }
}

RowFormat format_for(const ColumnList& columns, RowSpan rows) {
  RowFormat format{{}, columns};
  Element& row = format.element;
  for (const Column& column : columns) {
    if (row.find(column.name) != nullptr) fail("a result table would have two columns named '{}'", column.name);
    const std::size_t length = length_for(column, rows);
    row.add(column.name, column.kind, column.size.stretch ? std::bit_ceil(row.bytes + length) - row.bytes : length);
  }
  return format;
}

RowFormat format_in(const Dataset& table, const ColumnList& columns) {
  const Element& found = table.element();
  RowFormat format;
  for (const Column& column : columns) {
    const Field* const there = found.find(column.name);
    if (there == nullptr && column.optional) continue;
    if (there == nullptr) fail("table {} has no column '{}'", table.path(), column.name);
    if (sort_of(there->kind) != sort_of(column.kind)) {
      fail("column '{}' of table {} has an unexpected type", column.name, table.path());
    }
    format.element.add(column.name, column.kind, there->bytes);
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
      const Column& column = format.columns[k];
      encode_value(column, field, column.get ? column.get(rows.at(i)) : static_cast<std::int64_t>(first_number + i),
                   to);
    }
  }
  return bytes;
}

void decode(const RowFormat& format, const char* bytes, void* row) {
  for (std::size_t k = 0; k < format.columns.size(); ++k) {
    const Field& field = format.element.fields[k];
    if (const Column& column = format.columns[k]; column.set)
      column.set(row, decode_value(field, bytes + field.offset));
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
void create_texts(File& file, const std::string& path, const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, longest), {texts.size()}, nullptr);
  for (std::size_t i = 0; i < texts.size(); ++i) write_text(dataset, i, texts[i]);
}

void create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes) {
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, std::max(bytes, text.size())), {}, nullptr);
  write_text(dataset, 0, text);
}

void write_text(Dataset& dataset, std::uint64_t row, const std::string& text) {
  const Element& element = dataset.element();
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
