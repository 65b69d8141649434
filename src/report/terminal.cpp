#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/case_label.h"
#include "report/clean_text.h"
#include "report/narrow.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// In the order in which they go; "case", "change" and "verdict" stay. The interval is what a verdict rests on, so of
// the rest it goes last.
constexpr std::array<std::string_view, 20> least_worth{
    "p95",        "p99",     "memory",  "SM",      "tokens/J", "GPU busy",     "A tokens/s",
    "B tokens/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s",  "tokens/s/GPU", "TFLOP/s/GPU",
    "tokens/s",   "algbw",   "limit",   "A MFU",   "B MFU",    "ranks"};
constexpr std::array<std::string_view, 11> then_go{"of limit", "of peak", "MFU",  "speed-up", "efficiency", "n",
                                                   "busbw",    "runs",    "step", "time",     "% interval"};

// By how its heading begins; that of an interval begins with the confidence.
bool goes_as(const std::string& heading, std::string_view least) {
  return heading.starts_with(least) || (least == "% interval" && heading.ends_with(least));
}

// "step ms" is asked for as "step", "95 % interval" as "interval", "A step ms" as "step".
bool is_called(const std::string& heading, std::string_view name) {
  const std::string words = " " + lower(heading) + " ", wanted = " " + lower(name) + " ";
  return words.find(wanted) != std::string::npos || lower(heading).starts_with(lower(name) + "/");
}

void remove_column(Table& table, std::size_t column) {
  const auto offset = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + offset);
  for (auto& row : table.rows) row.erase(row.begin() + offset);
}

bool is_case_table(const Table& table) {
  return table.columns.size() > 1 && table.columns.front().heading == "case" &&
         table.columns.back().heading == "verdict";
}

std::optional<std::size_t> uses_column(const Table& table) {
  const auto found = std::ranges::find(table.columns, uses_heading, &Table::Column::heading);
  if (found == table.columns.end()) return std::nullopt;
  return found - table.columns.begin();
}

// Short names for long ones, each once; the others stay.
std::map<std::string, std::string> short_names(const Table& table, std::size_t long_name) {
  constexpr std::size_t max_variable = 28;
  const auto uses = uses_column(table);
  std::map<std::string, std::string> names;
  std::map<std::string, int> used;
  for (const auto& row : table.rows) {
    const std::string& name = row.front();
    const bool is_long = columns_of(name) > long_name;
    std::string shorter = uses && is_long && is_of_a_size(name) ? row[*uses] : short_layout(name);
    if (shorter.empty() && is_long) {
      const std::size_t equals = std::min(name.find('='), name.size());
      const std::string variable = name.substr(0, std::min(equals, max_variable));
      const std::string value = name.substr(std::min(equals + 1, name.size()));
      const bool says_nothing = value.empty() || value == "true" || value == "false";
      const bool plain =
          !says_nothing && columns_of(value) <= long_name && value.find_first_of("{=") == std::string::npos;
      shorter = plain ? value : fmt::format("{} #{}", variable, ++used[variable]);
    }
    const bool taken = std::ranges::any_of(names, [&](const auto& known) { return known.second == shorter; }) ||
                       std::ranges::any_of(table.rows, [&](const auto& other) { return other.front() == shorter; });
    if (!shorter.empty() && !taken && columns_of(shorter) < columns_of(name)) names[name] = shorter;
  }
  return names;
}

void select_columns(Table& table, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  std::vector<std::string> headings;
  for (const Table::Column& column : table.columns) headings.push_back(column.heading);
  for (const std::string& name : wanted) {
    if (std::ranges::none_of(headings, [&](const std::string& heading) { return is_called(heading, name); }))
      fail("--columns {}: there is no such column; allowed: {}", quote(name), join(headings, ", "));
  }
  for (std::size_t c = table.columns.size(); c-- > 1;) {
    const bool keep =
        std::ranges::any_of(wanted, [&](const std::string& name) { return is_called(table.columns[c].heading, name); });
    if (!keep) remove_column(table, c);
  }
}

// Of "-12.3 %"; what has no change comes first.
double change_in(const std::string& cell) {
  const std::size_t sign = cell.find_first_of("+-0123456789");
  if (sign == std::string::npos) return -std::numeric_limits<double>::infinity();
  return std::strtod(cell.c_str() + sign, nullptr);
}

void sort_rows(Table& table, const std::string& order) {
  const auto is_change = [](const auto& row) { return row.front() != "baseline" && row.front() != "baseline_again"; };
  const auto changes = std::stable_partition(table.rows.begin(), table.rows.end(), std::not_fn(is_change));
  if (order == "name") {
    std::stable_sort(changes, table.rows.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  } else if (order == "change") {
    const auto column = std::ranges::find(table.columns, "change", &Table::Column::heading);
    if (column == table.columns.end()) return;
    const auto c = column - table.columns.begin();
    std::stable_sort(changes, table.rows.end(),
                     [&](const auto& a, const auto& b) { return change_in(a[c]) < change_in(b[c]); });
  }
}

// Returns the headings that went.
std::vector<std::string> drop_columns(Table& table, std::size_t width) {
  std::vector<std::string> dropped;
  const auto drop = [&](std::string_view least) {
    for (std::size_t c = table.columns.size(); table.width() > width && c-- > 1;) {
      const std::string& heading = table.columns[c].heading;
      if (!goes_as(heading, least) || heading == "verdict") continue;
      dropped.push_back(heading);
      remove_column(table, c);
    }
  };
  for (const std::string_view least : least_worth) drop(least);
  for (const std::string_view least : then_go) drop(least);
  return dropped;
}

// Whether the first cell says what the column would.
bool names_itself(const std::vector<std::string>& row, std::size_t column) {
  return row[column].empty() || row[column] == row.front();
}

// What to say below the table.
std::vector<std::string> fit(Table& table, std::size_t width) {
  std::vector<std::string> remarks;
  if (width == 0 || table.width() <= width) return remarks;
  constexpr std::size_t long_name = 28, long_on_a_narrow_terminal = 18, narrow = 100;
  const auto names = short_names(table, width < narrow ? long_on_a_narrow_terminal : long_name);
  const auto uses = uses_column(table);
  bool named_by_use = false;
  std::vector<std::string> legend;
  for (auto& row : table.rows) {
    const auto shorter = names.find(row.front());
    if (shorter == names.end()) continue;
    const bool by_use = uses && row[*uses] == shorter->second;
    named_by_use |= by_use;
    if (!by_use) legend.push_back(fmt::format("{}: {}", shorter->second, row.front()));
    row.front() = shorter->second;
  }
  if (!legend.empty()) remarks.push_back(join(legend, "; ") + ".");
  if (named_by_use) {
    remarks.emplace_back(
        "Named by what they are in the model's step. A wider terminal, --format md and csv show their sizes.");
  }
  if (uses && std::ranges::all_of(table.rows, [&](const auto& row) { return names_itself(row, *uses); })) {
    remove_column(table, *uses);
  }
  if (const auto dropped = drop_columns(table, width); !dropped.empty()) {
    remarks.push_back(
        fmt::format("Left out to fit {} columns: {} (--columns says which to show).", width, join(dropped, ", ")));
  }
  return remarks;
}

// The bytes of a line that take its first `columns` columns.
std::size_t bytes_of_columns(std::string_view line, std::size_t columns) {
  std::size_t byte = 0;
  for (std::size_t seen = 0; byte < line.size(); ++byte) {
    const bool continuation = (static_cast<unsigned char>(line[byte]) & 0xc0) == 0x80;
    if (!continuation && seen++ == columns) break;
  }
  return byte;
}

const char* color_of(std::string_view verdict) {
  if (verdict.starts_with("faster")) return "\x1b[32m";
  if (verdict.starts_with("slower") || verdict.starts_with("failed") || verdict.starts_with("beyond"))
    return "\x1b[31m";
  return verdict.starts_with("unresolved") ? "\x1b[33m" : "";
}

}  // namespace

void arrange(Document& document, const TableView& view) {
  for (Section& section : document.sections) {
    std::vector<Piece> pieces;
    for (Piece& piece : section.pieces) {
      auto* numbers = std::get_if<Numbers>(&piece);
      if (numbers == nullptr) {
        pieces.push_back(std::move(piece));
      } else if (is_case_table(numbers->table)) {
        if (view.sort != "order") sort_rows(numbers->table, view.sort);
        select_columns(numbers->table, view.columns);
        const auto remarks = fit(numbers->table, view.width);
        pieces.push_back(std::move(piece));
        if (!remarks.empty()) pieces.emplace_back(List{remarks, List::Mark::none});
      } else {
        std::string caption = std::move(numbers->caption);
        for (Table& table : narrowed(numbers->table, view.width == 0 ? numbers->table.width() : view.width)) {
          pieces.emplace_back(Numbers{std::exchange(caption, ""), std::move(table), numbers->folded});
        }
      }
    }
    section.pieces = std::move(pieces);
  }
}

std::string colored(const std::string& text) {
  std::string out;
  std::size_t verdict_column = 0;  // 0: not in a table
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t at = verdict_column > 0 ? bytes_of_columns(line, verdict_column) : line.size();
    const char* color = at < line.size() ? color_of(line.substr(at)) : "";
    out += line.substr(0, at);
    if (*color != '\0') {
      out += fmt::format("{}{}\x1b[0m", color, line.substr(at));
    } else if (at < line.size()) {
      out += line.substr(at);
    }
    out += '\n';
    if (line.empty()) verdict_column = 0;
    if (line.starts_with("case ") && line.ends_with("  verdict"))
      verdict_column = columns_of(line) - std::string_view("verdict").size();
  }
  return out;
}

}  // namespace harness::report
