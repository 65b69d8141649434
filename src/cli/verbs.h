#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace harness {

struct SweepOptions {
  std::string config;
  std::string output;                  // -o; "" for the configuration's template
  std::vector<std::string> overrides;  // --set, --rounds … as key=value
  std::vector<std::string> only;
  std::string wrap;  // a command to start the timed workers under
  bool force = false;
  bool resume = false;
};

struct PlanOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> only;
  int ranks = 1;
  std::string like;  // a result file to take times from
};

struct ShowOptions {
  std::string file;
  std::string format = "text";
  bool breakdown = false;         // where the profiled steps went, below the table
  std::string interval = "yuen";  // or "sign"
};

struct ReportOptions {
  std::string file;
  std::string output;  // -o; "" for the result file's name with another ending, "-" for `out`
  std::string format = "html";
  bool force = false;
};

struct CheckOptions {
  std::vector<std::string> suites;  // operations, reference, equality, performance; none or "all": every one
  std::string backend = "cuda", oracle = "cpu";
  std::vector<std::string> only;  // operations whose name contains one of these
  bool fast = false;              // operations at small sizes only
  bool verbose = false;           // names each case before it runs
  std::string reference;          // folder; "": found beside the program
  std::string model = "gpt3-1.3b", precision = "bf16", peak_flops;
  std::int64_t micro_batch = 4;
  int warmup_steps = 20, steps = 30;
  int threads = 0;         // of the cpu backend; 0: all cores
  std::uint64_t seed = 0;  // of the operations' numbers; 0: another every time
  std::string output;      // -o: the text once more, and JSON lines beside it
};

// One verb each; returns the exit code. Throw Error.
class Job;
int sweep(Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only
int plan(const PlanOptions& options, std::ostream& out);
int show(const ShowOptions& options, std::ostream& out);
/// 0: the report was written, whatever it says of the sweep.
int report(const ReportOptions& options, std::ostream& out);
/// 0: everything that ran passed; 1: something failed; 3: nothing could be run, said in one line.
int check(const CheckOptions& options, std::ostream& out, std::ostream& err);
class Backend;
int check(const CheckOptions& options, const Backend& subject, const Backend& oracle, std::ostream& out,
          std::ostream& err);

}  // namespace harness
