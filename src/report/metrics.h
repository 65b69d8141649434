#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/summary.h"
#include "report/document.h"
#include "report/words.h"
#include "store/result.h"

namespace harness::report {

// All numbers of a case, each metric once. CSV and JSON have all of them; the table of cases and
// the table before/after take their columns and lines from here, in this order. docs/json.md describes every key.

enum class Unit : std::uint8_t {
  seconds,
  flops,        // FLOP/s
  bytes,        // of memory: MiB, GiB
  gigabytes_s,  // of bandwidth: GB/s, as nccl-tests prints it whatever the size
  share,        // 0.543 is "54.3 %"
  hertz,
  watts,
  number,
  count,  // an integer
};

/// The kind of measurement of a result's cases: not all metrics make sense for all.
enum class Measured : std::uint8_t { training, operation, collective };
Measured measured_by(const store::Result& result);

/// Where a table shows a metric: a rank is a GPU on some backends and a share of a machine's cores on others.
enum class Shown : std::uint8_t { everywhere, per_gpu, per_rank };

struct Metric {
  /// In the table of cases.
  struct Column {
    std::string_view heading = {};  // "{}" for the unit; "": no column
    int worth = Table::Column::stays;
  };
  std::string_view key = {};  // in JSON, a dot for a nested object: "effect.ratio"; in CSV with '_' for the dot
  Column column = {};
  Column column_of_operations = {};  // in its place where the cases are single operations other than collectives
  std::string_view name = {};        // of the line in before/after; "" in no such table
  Unit unit = Unit::number;
  std::vector<Measured> shown_for = {};  // in tables; empty: whatever is measured
  Shown shown_where = Shown::everywhere;
  std::optional<double> (*value)(const store::Result& result,
                                 const analysis::CaseSummary& row) = nullptr;  // in SI units
  std::string_view help = {};
};
std::span<const Metric> case_metrics();
/// Whether a result can have it: only single operations have rates.
bool belongs(const Metric& metric, const store::Result& result);

/// The text of a table's cell: empty where nothing was measured, or where the metric makes no sense for what was.
std::optional<double> table_value(const Metric& metric, const store::Result& result, const analysis::CaseSummary& row);

/// A metric's values in one table: one unit for all of them.
class MetricPrinter {
 public:
  MetricPrinter(const Metric& metric, std::span<const double> values);
  Table::Column column(Measured measured) const;     // with the unit
  std::string number(double value) const;            // "128.7"; shares with their sign: "54.0 %"
  std::string number_with_unit(double value) const;  // "128.7 ms"

 private:
  const Metric& metric_;
  Scale scale_;
};

}  // namespace harness::report
