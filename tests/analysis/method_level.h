#pragma once

#include <utility>
#include <vector>

#include "method_page.h"

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

/// A part of a contrast, whose weights add up to 0.
struct PageWeight {
  int group = 0;
  double weight = 0;
};
using PageContrast = std::vector<PageWeight>;

/// The model of a sweep with the consequences of its three guards, or without any.
class PageModel {
 public:
  explicit PageModel(std::vector<PageBlock> blocks, bool guarded = true);

  /// Of the log ratio of a group to the reference.
  PageInterval interval(int group, double alpha) const { return interval({{group, 1}, {0, -1}}, alpha); }
  /// "Ladder": of a weighted sum of locations.
  PageInterval interval(const PageContrast& contrast, double alpha) const;
  /// "Verdict": the rounds that would settle it if centre and scatter stayed as they are.
  int rounds_to_settle(const PageContrast& contrast, double alpha, double e) const;
  /// "Two states of the machine": whether the interval reaches to blocks apart.
  bool reaches(const PageContrast& contrast, double alpha) const;

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
  /// By how far each end moves for blocks apart, were there `then` rounds instead of `now`, all else alike.
  std::pair<double, double> reach(const PageContrast& contrast, double alpha, int then = 1, int now = 1) const;
  std::vector<double> values(const std::vector<double>& of_blocks, int group) const;

  std::vector<PageBlock> blocks_;
  std::vector<double> psi_;
  double scale_ = 0;
};

}  // namespace harness::method
