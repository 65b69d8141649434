#pragma once

#include <vector>

// docs/method.md, "The machine's level".
namespace harness::method {

struct PageBlock {
  double y = 0, t = 0;  // log block median; when its first step began
  int group = 0;        // 0: the reference; the cases from 1
  int name = 0;         // of its case: the baseline and its copy have different ones
  int round = 0, session = 0;
};

struct PageGroup {
  int n = 0;
  double m = 0, s = 0, V = 0, f = 0;
  int set_aside = 0;
};

struct PageInterval {
  double center = 0, low = 0, high = 0;
};

/// The model of a sweep with the consequences of its three guards.
class PageModel {
 public:
  explicit PageModel(std::vector<PageBlock> blocks);

  /// Of the log ratio of a group to the reference.
  PageInterval interval(int group, double alpha) const;

  bool carries_over = false;
  double rho = 0, carry_p = 1, r = 0, g = 1, v = 0;
  std::vector<PageGroup> groups;
  std::vector<double> level;  // L, of each block

 private:
  void estimate(bool by_round);
  std::vector<double> levels(const std::vector<double>& c, double decay, bool by_round) const;
  void locate();
  void find_variances();
  double after_effects() const;
  void widen();
  std::vector<double> values(const std::vector<double>& of_blocks, int group) const;

  std::vector<PageBlock> blocks_;
  std::vector<double> psi_;
  double scale_ = 0;
};

}  // namespace harness::method
