#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace harness::report {

/// The column of a metric: "rates.seconds" is rates_seconds.
inline std::string csv_column(std::string_view key) {
  std::string column(key);
  std::ranges::replace(column, '.', '_');
  return column;
}

/// One line of CSV as RFC 4180 has it: texts are quoted where they must be, numbers have full precision, and what has
/// no value is empty.
class CsvLine {
 public:
  void text(std::string_view value) {
    if (started_) out_ += ',';
    started_ = true;
    if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
      out_ += value;
      return;
    }
    out_ += '"';
    for (const char c : value) {
      if (c == '"') out_ += '"';
      out_ += c;
    }
    out_ += '"';
  }
  void number(const std::optional<double>& value) { text(value ? fmt::format("{}", *value) : ""); }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  std::string out_;
  bool started_ = false;
};

}  // namespace harness::report
