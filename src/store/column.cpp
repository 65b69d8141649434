#include "store/column.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace harness::store {
namespace {

// Rows that are read and rows that are written have their members in the same places.
const void* member_of(const Column& column, const void* row) {
  return column.in(const_cast<void*>(row));
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

}  // namespace harness::store
