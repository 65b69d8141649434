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

// All numbers of a case, each metric once. CSV and JSON have all of them; the table of cases takes its columns from
// here, in this order. docs/json.md describes every key.

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

/// The kind of measurement of a result's cases.
enum class Measured : std::uint8_t { training, operation, collective };
Measured measured_by(const store::Result& result);

struct Metric {
  std::string_view key;  // in JSON, a dot for a nested object: "effect.ratio"; in CSV with '_' for the dot
  Unit unit = Unit::number;
  std::optional<double> (*value)(const store::Result& result,
                                 const analysis::CaseSummary& row) = nullptr;  // in SI units
  std::string_view help;
  std::string_view heading = {};     // in the table of cases: "{}" for the unit, on GPUs "GPU" for "rank"; "": none
  int worth = Table::Column::stays;  // of that column
};
std::span<const Metric> case_metrics();
/// Whether a result can have it: only single operations have rates.
bool belongs(const Metric& metric, const store::Result& result);

/// The value in a table: nothing where nothing was measured.
std::optional<double> table_value(const Metric& metric, const store::Result& result, const analysis::CaseSummary& row);

/// A metric's values in one table: one unit for all of them.
class MetricPrinter {
 public:
  MetricPrinter(const Metric& metric, std::span<const double> values);
  Table::Column column(const store::Result& result) const;  // with the unit
  std::string number(double value) const;                   // "128.7"; shares with their sign: "54.0 %"

 private:
  const Metric& metric_;
  Scale scale_;
};

}  // namespace harness::report
