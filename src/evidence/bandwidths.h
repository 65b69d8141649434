#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"

namespace harness::evidence {

inline constexpr double giga = 1e9;  // GB/s as nccl-tests prints them

/// One buffer arrangement of a row. Absent values were not measured.
struct Direction {
  std::optional<double> seconds, algbw, busbw;  // bytes per second
  std::optional<double> wrong;                  // number of wrong values; before nccl-tests 2.13 largest difference
};

struct SizeRow {
  std::int64_t bytes = 0;
  Direction out_of_place, in_place;

  /// Returns the better direction's value; 0: neither was measured.
  double busbw() const { return std::max(out_of_place.busbw.value_or(0), in_place.busbw.value_or(0)); }
  double algbw() const { return std::max(out_of_place.algbw.value_or(0), in_place.algbw.value_or(0)); }
  /// Returns the shorter time; 0: neither was measured.
  double seconds() const;
};

/// A collective by message size: one test of nccl-tests, rccl-tests or the OSU micro-benchmarks.
struct Bandwidths {
  std::string kind = "nccl-tests", flavour;  // flavour: "rccl-tests", else ""
  std::string test;                          // "all_reduce", as the program prints it; "": not printed
  std::string nccl;                          // "2.29.7"; "": not printed
  std::vector<std::string> columns;          // leading columns: size, count, type, redop, root
  bool wrong_is_a_count = true;              // false: largest difference, before nccl-tests 2.13
  std::string redop, root;                   // from the first row; "": no such column
  std::vector<std::string> hosts;            // hosts of the devices, in order, without duplicates
  std::int64_t ranks = 0, first_ranks = 0;   // 0: not printed; first_ranks: devices listed as rank 0
  std::int64_t largest_rank = -1;            // from the list of devices; -1: not listed
  bool devices_cut = false;                  // the list of devices ends in "..."
  bool split = false;                        // NCCL_TESTS_SPLIT: several groups; busbw is that of one
  std::string gpu;                           // "H100 80GB HBM3"
  std::optional<double> average_busbw;       // as printed, in GB/s
  std::string failure;                       // the error that ended the test; "": none
  std::int64_t out_of_bounds = -1;           // wrong results as counted by the program; -1: not printed
  std::vector<std::string> environment;      // "NCCL_ALGO=Ring"; only variables that hold no secrets
  std::int64_t last_bytes = 0;               // where the sizes are to end; 0: not printed
  std::vector<SizeRow> rows;                 // by size
  bool repeated = false;                     // sizes were measured several times: cycles or data types

  /// Returns the collective as printed, otherwise inferred from busbw / algbw; "": cannot be inferred.
  std::string collective() const;
  /// Sorts the rows by size and keeps the best of each size.
  void keep_best();
  /// Infers the ranks if the list of devices is incomplete: from the highest rank listed, otherwise from busbw / algbw,
  /// which exceeds 1 only for an all-reduce: 2 (n - 1) / n.
  void complete();
};

/// Extracts nccl-tests and rccl-tests output from mixed lines. Locates the columns by the two header lines, because
/// their number changed between nccl-tests 2.0 and 2.19.
class NcclTestsReader {
 public:
  /// `file`: its name may contain the test's.
  explicit NcclTestsReader(std::string file) : file_(std::move(file)) {}
  void line(const Line& line);
  /// Returns one result per test run; runs without rows are left out, unless an error ended them or no run has rows.
  std::vector<Bandwidths> finish();

 private:
  void begin();
  void header(std::string_view text);
  void columns(const std::vector<std::string_view>& words);
  void device(std::string_view text);
  void row(std::string_view text);

  std::string file_, named_test_, nccl_;
  bool rccl_ = false, first_is_in_place_ = false;
  std::size_t width_ = 0, redop_ = 0, root_ = 0;  // number of columns, and the places of two; 0: no such column
  std::size_t first_ = 0, directions_ = 0;        // the place of the first time, and the number of times
  std::string begun_;                             // parts of a row that other output interrupted
  std::vector<Bandwidths> runs_;
  std::set<std::string> hosts_;  // hosts of the last run
  bool open_ = false;            // a run has begun and its average has not been read yet
};

/// Extracts OSU micro-benchmark output: latency or bandwidth by size.
class OsuReader {
 public:
  void line(const Line& line);
  std::vector<Bandwidths> finish();

 private:
  bool bandwidth_ = false;
  std::size_t value_column_ = 1;  // of a row's latency or bandwidth; 0: not known yet
  std::vector<Bandwidths> runs_;
};

/// Parses the JSON file of nccl-tests (-J, since 2.17.4). Throws Error for any other text.
Bandwidths nccl_tests_json(const std::string& text);

/// Returns the test named in a path or command: "all_reduce" for "./build/all_reduce_perf -b 8"; "": none.
std::string test_in(std::string_view text);
/// Returns busbw / algbw of a collective on n ranks (nccl-tests, doc/PERFORMANCE.md); 0: not known.
double bus_factor(std::string_view collective, std::int64_t ranks);

/// Reports a measured collective: peak, latency, dips, and the distance from the link limit; of a test without rows,
/// the error that ended it.
Answer answer_of(Bandwidths measured, const Gaps& gaps);
/// Reports runs of a single rank each, which measure nothing.
Answer answer_of_single_ranks(const std::vector<Bandwidths>& runs);
/// Returns rows that compare the sizes measured in both.
std::vector<std::pair<std::string, std::string>> compared(const Bandwidths& first, const Bandwidths& second);

}  // namespace harness::evidence
