#pragma once

#include <string>
#include <vector>

#include "store/row_visitors.h"

// Tables of structs. `columns` is called with a visitor and a row, like the templates of columns.h.
namespace harness::store::hdf5 {

template <class Row, class Columns>
Element declare(const std::vector<Row>& rows, Columns columns, const Row& example = {}) {
  DeclareColumns visit;
  columns(visit, example);
  for (const auto& row : rows) {
    visit.begin_row();
    columns(visit, row);
  }
  return visit.element();
}

template <class Row, class Columns>
std::vector<char> encode(const Element& element, const Row* rows, std::size_t count, std::size_t first,
                         Columns columns) {
  std::vector<char> bytes(element.bytes * count);
  for (std::size_t i = 0; i < count; ++i) {
    WriteRow visit(element, static_cast<std::int64_t>(first + i), bytes.data() + i * element.bytes);
    columns(visit, rows[i]);
  }
  return bytes;
}

template <class Row, class Columns>
void write_rows(Dataset& dataset, const Element& element, const Row* rows, std::size_t count, std::size_t first,
                Columns columns) {
  const auto bytes = encode(element, rows, count, first, columns);
  dataset.write(element, first, count, bytes.data());
}

/// Numbers of one sort are converted where files differ; nothing else is.
enum class Sort : std::uint8_t { text, whole, real };
constexpr Sort sort_of(Kind kind) {
  if (kind == Kind::text) return Sort::text;
  return kind == Kind::float32 || kind == Kind::float64 ? Sort::real : Sort::whole;
}

/// The wanted columns as the file has them: its text lengths. Throws Error if one is missing or of another kind.
inline Element bind(const Element& wanted, const Dataset& dataset) {
  const Element found = dataset.element();
  Element bound;
  for (const auto& field : wanted.fields) {
    const Field* there = found.find(field.name);
    if (there == nullptr) fail("table {} has no column '{}'", dataset.path(), field.name);
    if (sort_of(there->kind) != sort_of(field.kind)) {
      fail("column '{}' of table {} has an unexpected type", field.name, dataset.path());
    }
    bound.add(field.name, field.kind, there->bytes);
  }
  return bound;
}

template <class Row, class Columns>
std::vector<Row> read_rows(const Dataset& dataset, Columns columns, const Row& example = {}) {
  const Element element = bind(declare<Row>({}, columns, example), dataset);
  const std::size_t count = dataset.rows();
  std::vector<char> bytes(element.bytes * count);
  dataset.read(element, 0, count, bytes.data());
  std::vector<Row> rows(count, example);
  for (std::size_t i = 0; i < count; ++i) {
    ReadRow visit(element, bytes.data() + i * element.bytes);
    columns(visit, rows[i]);
  }
  return rows;
}

/// A list of texts as a dataset of one dimension; a single text as a scalar.
Dataset create_texts(File& file, const std::string& path, const std::vector<std::string>& texts);
Dataset create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes = 0);
std::vector<std::string> read_texts(const File& file, const std::string& path);
std::string read_text(const File& file, const std::string& path);
void write_text(Dataset& dataset, std::uint64_t row, const std::string& text);

}  // namespace harness::store::hdf5
