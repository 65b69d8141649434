#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "machine/conditions.h"
#include "store/hdf5_file.h"
#include "store/result.h"

// A column of a table, or an attribute of /run, consists of its name, the member of the plain struct that it stores,
// and its allowed values. The lists below define them once for every table: files are created, written, read and
// checked from these lists alone. docs/file-format.md gives their meaning; a test compares the two.
namespace harness::store {

/// The numbers of a result that bound other numbers.
struct Counts {
  std::int64_t cases = 0, blocks = 0, ranks = 0, nodes = 0, sessions = 0;
};

/// The allowed values of a number in a result file. A damaged or forged file may hold others; readers, which index and
/// loop by these numbers, never see them.
struct Bounds {
  double low = 0, high = 0;
  std::int64_t Counts::*count = nullptr;  // if set, this count is added to `high`
  bool unknown = false;                   // also allows NaN: not known
};

constexpr Bounds between(double low, double high) {
  return {low, high};
}
constexpr Bounds up_to(std::int64_t Counts::*count) {
  return {0, 0, count};
}
constexpr Bounds index_of(std::int64_t Counts::*count) {
  return {0, -1, count};
}
/// -1: none.
constexpr Bounds index_or_none(std::int64_t Counts::*count) {
  return {-1, -1, count};
}
inline constexpr double largest_amount = 1e30;
inline constexpr Bounds amount{0, largest_amount, nullptr, true};  // seconds, bytes, FLOP
inline constexpr Bounds known_amount{0, largest_amount};
inline constexpr Bounds moment{-largest_amount, largest_amount};  // may be before the zero of its clock

/// The length of a text column.
struct TextSize {
  std::size_t bytes = 0;  // 0: the longest text known when the file is created
  bool stretch = false;   // of the last column: pads the row to a power of two, so that no row crosses a page
};

/// The value of a cell: integer or flag, real number, text or word.
using Value = std::variant<std::int64_t, double, std::string>;

struct Column {
  std::string name;
  hdf5::Kind kind = hdf5::Kind::int32;
  std::function<Value(const void* row)> get = {};        // empty: the row number, which no struct stores
  std::function<void(void* row, Value value)> set = {};  // throws Error for an unknown word
  Bounds bounds = {};                                    // for numbers
  TextSize size = {};                                    // for texts and words
  bool optional = false;  // added when files without it existed: these stay readable, and the member keeps its default
};

using ColumnList = std::vector<Column>;

/// Returns the names of an enum's values from 0 to `last`.
template <class Status>
std::vector<std::string> words_to(Status last) {
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(last); ++i) words.emplace_back(name_of(static_cast<Status>(i)));
  return words;
}
/// Returns the index of `word` in `words`; throws Error if it is none of them.
std::int64_t number_of_word(const std::string& column, const std::string& word, const std::vector<std::string>& words);

/// The columns of tables whose rows are `Row`. Members are given as &Row::member, or as a function from a row to a
/// reference. Every number needs bounds.
template <class Row>
class Columns {
 public:
  ColumnList list;

  void key(std::string name) { list.push_back({std::move(name)}); }

  /// A number or a truth value. The bounds of a std::uint64_t, which may be any, do not count.
  template <class Access>
  Column& number(std::string name, Access access, const Bounds& bounds) {
    using T = Type<Access>;
    if constexpr (std::is_same_v<T, double>) {
      return add<double>(std::move(name), hdf5::Kind::float64, access, bounds);
    } else {
      static_assert(std::is_integral_v<T>);
      constexpr hdf5::Kind large = std::is_signed_v<T> ? hdf5::Kind::int64 : hdf5::Kind::uint64;
      return add<std::int64_t>(std::move(name), sizeof(T) == 8 ? large : hdf5::Kind::int32, access, bounds);
    }
  }
  template <class Access>
  Column& text(std::string name, Access access, TextSize size = {}) {
    static_assert(std::is_same_v<Type<Access>, std::string>);
    Column& column = add<std::string>(std::move(name), hdf5::Kind::text, access, {});
    column.size = size;
    return column;
  }
  template <class Access>
  Column& word(std::string name, Access access, const std::vector<std::string>& words) {
    static_assert(std::is_enum_v<Type<Access>>);
    Column& column = add<std::int64_t>(std::move(name), hdf5::Kind::text, access, {});
    column.size = {12, false};
    column.get = [number = column.get, words](const void* row) -> Value {
      return words.at(static_cast<std::size_t>(std::get<std::int64_t>(number(row))));
    };
    column.set = [number = column.set, words, of = column.name](void* row, const Value& word) {
      number(row, number_of_word(of, std::get<std::string>(word), words));
    };
    return column;
  }

 private:
  template <class Access>
  using Type = std::remove_cvref_t<std::invoke_result_t<Access, Row&>>;

  // `Stored`: the alternative of Value that holds the member.
  template <class Stored, class Access>
  Column& add(std::string name, hdf5::Kind kind, Access access, const Bounds& bounds) {
    // One access serves reading and writing, so it takes a mutable row.
    auto get = [access](const void* row) -> Value {
      return static_cast<Stored>(std::invoke(access, *static_cast<Row*>(const_cast<void*>(row))));
    };
    auto set = [access](void* row, Value value) {
      std::invoke(access, *static_cast<Row*>(row)) = static_cast<Type<Access>>(std::get<Stored>(std::move(value)));
    };
    list.push_back({std::move(name), kind, std::move(get), std::move(set), bounds});
    return list.back();
  }
};

/// Contiguous rows of any type in memory.
struct RowSpan {
  const void* first = nullptr;
  std::size_t bytes_of_row = 0, count = 0;

  const void* at(std::size_t i) const { return static_cast<const char*>(first) + i * bytes_of_row; }
};
template <class Row>
RowSpan span_of(const std::vector<Row>& rows) {
  return {rows.data(), sizeof(Row), rows.size()};
}
template <class Row>
RowSpan span_of(const Row& row) {
  return {&row, sizeof(Row), 1};
}

/// Throws Error, naming `what`, for a number outside its bounds.
void require_within(std::string_view what, double value, const Bounds& bounds, const Counts& counts);
/// Throws Error where a number of a row is outside its bounds. `sort` and `path`: "column" NAME "of /cases".
void require_within_bounds(const ColumnList& columns, std::string_view sort, std::string_view path, RowSpan rows,
                           const Counts& counts);

/// The memory layout of a table's rows that HDF5 reads and writes: field i of `element` is columns[i].
struct RowFormat {
  hdf5::Element element;
  ColumnList columns;
};

/// Returns the format of a new table; texts are as long as the longest of `rows`, unless TextSize sets their length.
RowFormat format_for(const ColumnList& columns, RowSpan rows);
/// Returns the format of an existing table, with its text lengths. Throws Error if a column that all files have is
/// missing, or if a column has another kind.
RowFormat format_in(const hdf5::Dataset& table, const ColumnList& columns);

std::vector<char> encode(const RowFormat& format, RowSpan rows, std::size_t first_number);
/// Decodes `bytes`, as encode() returns them, into a row of the format's type.
void decode(const RowFormat& format, const char* bytes, void* row);

void write_rows(hdf5::Dataset& table, const RowFormat& format, RowSpan rows, std::size_t first);

/// Cuts `text` to `bytes` between characters, with "…" at the cut.
std::string shortened(std::string_view text, std::size_t bytes);

inline constexpr const char* schema_name = "harness-result";
/// Increases only if a reader of the previous version would misread a file; a new column does not count.
inline constexpr int schema_version = 3;

/// Opens a result file, or throws Error: no such file, a directory, not HDF5, truncated, not a harness result, too new.
hdf5::File open_result(const std::string& path, bool writable);

inline constexpr std::size_t warning_bytes = 512;

void list_columns(Columns<Result>& columns);
void list_columns(Columns<std::pair<std::string, std::string>>& columns);
void list_columns(Columns<ResultRank>& columns);
void list_columns(Columns<ResultRole>& columns);
void list_columns(Columns<ResultBlock>& columns);
void list_columns(Columns<ResultGpu>& columns);
void list_columns(Columns<machine::Conditions>& columns);
void list_columns(Columns<ResultInterval>& columns);
void list_columns(Columns<ResultTotal>& columns);
void list_columns(Columns<ResultSplit>& columns);
void list_columns(Columns<ResultOperations>& columns);
void list_columns(Columns<ResultGradient>& columns);
void list_columns(Columns<ResultNcclCall>& columns);
void list_columns(Columns<ResultNcclFact>& columns);
void list_columns(Columns<ResultPoint>& columns);
void list_columns(Columns<ResultFinding>& columns);
void list_columns(Columns<ResultCase>& columns, const std::vector<std::string>& variables);

/// Returns the attributes of /run for Row = Result, else the columns of the table with such rows.
template <class Row, class... Variables>
ColumnList columns_of(const Variables&... variables) {
  Columns<Row> columns;
  list_columns(columns, variables...);
  return std::move(columns.list);
}

struct Table {
  const char* path;
  bool optional = false;  // as Column::optional
  bool by_block = false;  // has a row for each block, written when the block has run
};
/// Whether these are the rows of /timeline or /timeline_totals, which hold the profiled steps and their sums.
template <class Row>
inline constexpr bool of_a_timeline = std::is_same_v<Row, ResultInterval> || std::is_same_v<Row, ResultTotal>;

/// Calls each(table, rows, columns) for all tables of a result, const or not, in the order of the file.
template <class AnyResult, class Each>
void each_table(AnyResult& r, Each&& each) {
  const auto table = [&]<class Rows>(const Table& about, Rows& rows, const auto&... variables) {
    each(about, rows, columns_of<typename Rows::value_type>(variables...));
  };
  table({"/run/environment"}, r.environment);
  table({"/run/identity"}, r.identity);
  table({"/ranks"}, r.rank_table);
  table({"/cases"}, r.cases, r.variables);
  table({"/roles", true}, r.roles);
  table({"/blocks"}, r.blocks);
  table({"/tuning", true}, r.tuning);
  table({"/timeline_splits", true}, r.splits);
  table({"/timeline_operations", true}, r.operations);
  table({"/gradients", true}, r.gradients);
  table({"/nccl_calls", true}, r.nccl_calls);
  table({"/nccl_facts", true}, r.nccl_facts);
  table({"/points", true}, r.points);
  table({"/gpu", true, true}, r.gpu);
  table({"/conditions", true, true}, r.conditions);
  table({"/findings", true}, r.doctor.findings);
  table({"/timeline"}, r.timeline);
  table({"/timeline_totals"}, r.totals);
}

}  // namespace harness::store

namespace harness::store::hdf5 {

/// A list of texts as a dataset of one dimension; a single text as a scalar.
void create_texts(File& file, const std::string& path, const std::vector<std::string>& texts);
void create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes = 0);
std::vector<std::string> read_texts(const File& file, const std::string& path);
std::string read_text(const File& file, const std::string& path);
void write_text(Dataset& dataset, std::uint64_t row, const std::string& text);

}  // namespace harness::store::hdf5
