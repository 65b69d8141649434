#pragma once

#include <string>
#include <vector>

#include "store/column.h"
#include "store/hdf5_file.h"

// Tables of structs, by their lists of columns, and texts.
namespace harness::store {

/// How the rows of one table lie in the memory that HDF5 reads and writes: field i of `element` is columns[i].
struct RowFormat {
  hdf5::Element element;
  ColumnList columns;
};

/// For a table yet to be made; texts are as long as the longest of `rows`.
RowFormat format_for(const ColumnList& columns, RowSpan rows);
/// For a table that there is, with its lengths of texts. Throws Error if a column is missing that all files have, or is
/// of another kind.
RowFormat format_in(const hdf5::Dataset& table, const ColumnList& columns);

std::vector<char> encode(const RowFormat& format, RowSpan rows, std::size_t first_number);
/// `bytes` as encode() returns them, into a row of the format's type.
void decode(const RowFormat& format, const char* bytes, void* row);

void write_rows(hdf5::Dataset& table, const RowFormat& format, RowSpan rows, std::size_t first);

/// All rows of a table. What the file does not say is as in `example`.
template <class Row>
std::vector<Row> read_rows(const hdf5::Dataset& table, const Columns<Row>& columns, const Row& example = {}) {
  const RowFormat format = format_in(table, columns.list());
  const std::size_t count = table.rows();
  const std::vector<char> bytes = table.read(format.element, 0, count, sizeof(Row));
  std::vector<Row> rows(count, example);
  for (std::size_t i = 0; i < count; ++i) decode(format, bytes.data() + i * format.element.bytes, &rows[i]);
  return rows;
}

/// `text` cut to `bytes` at a character's end, with "…" where something is missing.
std::string shortened(std::string_view text, std::size_t bytes);

}  // namespace harness::store

namespace harness::store::hdf5 {

/// A list of texts as a dataset of one dimension; a single text as a scalar.
Dataset create_texts(File& file, const std::string& path, const std::vector<std::string>& texts);
Dataset create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes = 0);
std::vector<std::string> read_texts(const File& file, const std::string& path);
std::string read_text(const File& file, const std::string& path);
void write_text(Dataset& dataset, std::uint64_t row, const std::string& text);

}  // namespace harness::store::hdf5
