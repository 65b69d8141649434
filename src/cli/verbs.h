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
};

// One verb each; returns the exit code. Throw Error.
class Job;
int sweep(Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err);  // rank 0 only
int plan(const PlanOptions& options, std::ostream& out);
int show(const ShowOptions& options, std::ostream& out);

}  // namespace harness
