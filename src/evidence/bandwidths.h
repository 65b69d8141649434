#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/answer.h"
#include "evidence/input.h"

namespace harness::evidence {

inline constexpr double giga = 1e9;  // GB/s as nccl-tests prints them

/// One buffer arrangement of a row: nothing where the program did not measure it.
struct Direction {
  std::optional<double> seconds, algbw, busbw;  // bytes per second
  std::optional<double> wrong;  // values that are wrong, or before nccl-tests 2.13 the largest difference
};

struct SizeRow {
  std::int64_t bytes = 0;
  Direction out_of_place, in_place;

  /// The better one; 0: none was measured.
  double busbw() const;
  double algbw() const;
  /// The shorter one; 0: none was measured.
  double seconds() const;
};

/// A collective by size: one test of nccl-tests, rccl-tests or the OSU micro-benchmarks.
struct Bandwidths {
  std::string kind = "nccl-tests", flavour;  // flavour: "rccl-tests", else ""
  std::string test;                          // "all_reduce" as the program says it; "": it does not
  std::string nccl;                          // "2.29.7"; "": not said
  std::vector<std::string> columns;          // the leading ones: size, count, type, redop, root
  bool wrong_is_a_count = true;              // false: the largest difference, as before nccl-tests 2.13
  std::string redop, root;                   // of the first row; "": it has no such column
  std::vector<std::string> hosts;            // of the devices, in order, each once
  std::int64_t ranks = 0, first_ranks = 0;   // 0: not said; first_ranks: devices that call themselves rank 0
  std::int64_t largest_rank = -1;            // as the list of devices has it
  bool devices_cut = false;                  // the list of devices ends in "..."
  bool split = false;                        // NCCL_TESTS_SPLIT: several groups, and busbw is of one
  std::string gpu;                           // "H100 80GB HBM3"
  std::optional<double> average_busbw;       // as printed, in GB/s
  std::int64_t out_of_bounds = -1;           // results that the program itself calls wrong; -1: not said
  std::vector<std::string> environment;      // "NCCL_ALGO=Ring": only what is no secret
  std::vector<SizeRow> rows;                 // by size
  bool repeated = false;                     // sizes were measured several times: cycles, or types of values

  /// The collective: as said, else by the ratio of busbw to algbw; "": cannot be told.
  std::string collective() const;
  /// Sorts the rows, and keeps the best of each size.
  void keep_best();
  /// Completes what the list of devices lacks: ranks by the last one's number, else by busbw / algbw, which of an
  /// all-reduce alone exceeds 1: 2 (n - 1) / n.
  void complete();
};

/// Takes lines of nccl-tests and rccl-tests among any others. Columns are found by the two lines that head them: their
/// number has changed between nccl-tests 2.0 and 2.19.
class NcclTestsReader {
 public:
  /// `file`: its name may say the test.
  explicit NcclTestsReader(std::string file) : file_(std::move(file)) {}
  void line(const Line& line);
  /// Each run of a test. A run without rows does not count.
  std::vector<Bandwidths> finish();

 private:
  void begin();
  void header(std::string_view text);
  void device(std::string_view text);
  void row(std::string_view text);

  struct Columns {
    std::size_t time = 0, algbw = 0, busbw = 0, wrong = 0;  // places in a row; 0: none
    bool in_place = false;
  };
  std::string file_, named_test_, nccl_;
  bool rccl_ = false, first_is_in_place_ = false;
  std::size_t width_ = 0, redop_ = 0, root_ = 0;
  std::vector<Columns> columns_;
  std::vector<Bandwidths> runs_;
  std::set<std::string> hosts_;  // of the last run
  bool open_ = false;            // a run has begun, and its average has not come yet
};

/// The OSU micro-benchmarks: a latency or a bandwidth by size.
class OsuReader {
 public:
  void line(const Line& line);
  std::vector<Bandwidths> finish();

 private:
  bool bandwidth_ = false;
  std::vector<Bandwidths> runs_;
};

/// The JSON file of nccl-tests (-J, since 2.17.4). Throws Error for a text that is none.
Bandwidths nccl_tests_json(const std::string& text);

/// The name of a test in a path or a command: "all_reduce" of "./build/all_reduce_perf -b 8"; "": none.
std::string test_in(std::string_view text);
/// busbw / algbw of a collective on n ranks (nccl-tests, doc/PERFORMANCE.md); 0: not known.
double bus_factor(std::string_view collective, std::int64_t ranks);

/// Reads a measured collective: peak, latency, holes, and how far it is from the limit of the links.
Answer answer_of(Bandwidths measured, const Gaps& gaps);
/// Runs that were one rank each: nothing was measured.
Answer answer_of_single_ranks(const std::vector<Bandwidths>& runs);
/// The sizes that both measured, one beside the other.
std::vector<std::pair<std::string, std::string>> compared(const Bandwidths& first, const Bandwidths& second);

}  // namespace harness::evidence
