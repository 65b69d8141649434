#include "method_level.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "method_page.h"

namespace harness::method {
namespace {

constexpr double least_scale = 1e-7;

std::vector<double> distances(const std::vector<double>& values, double from) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::abs(value - from));
  return out;
}

double weight(double u) {
  return std::abs(u) < 1 ? std::pow(1 - u * u, 2) : 0;
}

}  // namespace

PageModel::PageModel(std::vector<PageBlock> blocks, bool guarded) : blocks_(std::move(blocks)) {
  std::ranges::stable_sort(blocks_, {}, [](const PageBlock& b) { return std::tuple(b.session, b.t); });
  estimate(false);
  if (!guarded) return;
  carry_p = after_effects();
  carries_over = carry_p < 0.05;
  if (carries_over) {
    std::map<std::pair<int, int>, int> in_round;
    for (const PageBlock& b : blocks_) ++in_round[{b.session, b.round}];
    std::erase_if(blocks_, [&](const PageBlock& b) { return in_round[{b.session, b.round}] < 2; });
    estimate(true);
  }
  widen();
}

std::vector<double> PageModel::values(const std::vector<double>& of_blocks, int group) const {
  std::vector<double> own;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].group == group) own.push_back(of_blocks[i]);
  }
  return own;
}

std::vector<double> PageModel::levels(const std::vector<double>& c, double decay, bool by_round) const {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].session == blocks_[i - 1].session) gaps.push_back(blocks_[i].t - blocks_[i - 1].t);
  }
  const double usual = median(gaps);
  std::vector<double> place(blocks_.size(), 0);  // in T, pauses cut
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    place[i] = place[i - 1] + std::min((blocks_[i].t - blocks_[i - 1].t) / usual, 64.0);
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    double sum = 0, weights = 0;
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      if (i == j || blocks_[i].session != blocks_[j].session) continue;
      if (by_round && blocks_[i].round != blocks_[j].round) continue;
      const double w = by_round ? 1 : std::pow(decay, std::abs(place[i] - place[j]));
      sum += w * c[j];
      weights += w;
    }
    out.push_back(sum / weights);
  }
  return out;
}

void PageModel::estimate(bool by_round) {
  std::vector<double> y;
  int last = 0;
  for (const PageBlock& b : blocks_) {
    y.push_back(b.y);
    last = std::max(last, b.group);
  }
  groups.assign(last + 1, {});
  const auto medians_of_rounds = [&](const std::vector<double>& of_blocks) {
    std::map<std::pair<int, int>, std::vector<double>> rounds;
    for (std::size_t i = 0; i < y.size(); ++i) rounds[{blocks_[i].session, blocks_[i].round}].push_back(of_blocks[i]);
    std::vector<double> out;
    for (const PageBlock& b : blocks_) out.push_back(median(rounds[{b.session, b.round}]));
    return out;
  };
  const auto x = [&] {
    std::vector<double> out;
    for (const PageBlock& b : blocks_) out.push_back(b.y - (groups[b.group].m - groups[0].m));
    return out;
  };
  const auto minus = [](std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
  };
  const double N = static_cast<double>(y.size()), G = static_cast<double>(groups.size());
  const double factor = 1.4826 * std::sqrt(N / std::max(N - G, 1.0));
  level = medians_of_rounds(y);
  for (int k = 0; k <= last; ++k) groups[k].m = median(values(minus(y, level), k));
  level = medians_of_rounds(x());
  scale_ = std::max(factor * median(distances(minus(x(), level), 0)), least_scale);
  constexpr std::array decays{0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0};
  for (int pass = 0; pass < 8; ++pass) {
    const std::vector<double> machine = x();
    std::vector<double> c = machine;
    for (std::size_t i = 0; i < c.size(); ++i) {
      c[i] = std::clamp(c[i], level[i] - 2.5 * scale_, level[i] + 2.5 * scale_);
    }
    double least = std::numeric_limits<double>::infinity();
    for (const double decay : decays) {
      if (by_round || pass >= 5) break;
      double missed = 0;
      for (const double d : minus(machine, levels(c, decay, false))) missed += std::abs(d);
      if (missed >= least) continue;
      least = missed;
      rho = decay;
    }
    level = levels(c, rho, by_round);
    const std::vector<double> beyond = minus(y, level);
    std::vector<double> off;
    for (std::size_t i = 0; i < y.size(); ++i) {
      off.push_back(std::abs(beyond[i] - median(values(beyond, blocks_[i].group))));
    }
    scale_ = std::max(factor * median(off), least_scale);
    locate();
  }
  find_variances();
}

void PageModel::locate() {
  std::vector<double> z;
  for (std::size_t i = 0; i < blocks_.size(); ++i) z.push_back(blocks_[i].y - level[i]);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const std::vector<double> own = values(z, static_cast<int>(k));
    groups[k].n = static_cast<int>(own.size());
    groups[k].m = median(own);
    groups[k].s = std::max(scale_, 1.4826 * median(distances(own, median(own))));
    for (int step = 0; step < 10; ++step) {
      double sum = 0, weights = 0;
      for (const double value : own) {
        const double w = weight((value - groups[k].m) / (6 * groups[k].s));
        sum += w * value;
        weights += w;
      }
      if (weights > 0) groups[k].m = sum / weights;
    }
  }
}

void PageModel::find_variances() {
  psi_.clear();
  std::vector<double> own_v;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    double squares = 0, slope = 0;
    PageGroup& group = groups[k];
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].group != static_cast<int>(k)) continue;
      const double off = blocks_[i].y - level[i] - group.m, u = off / (6 * group.s);
      squares += std::pow(off * weight(u), 2);
      if (std::abs(u) < 1) slope += (1 - u * u) * (1 - 5 * u * u);
      group.set_aside += std::abs(u) >= 1;
    }
    const double b = std::max(slope / group.n, 0.5);
    own_v.push_back(squares / (b * b * std::max(group.n - 1, 1)));
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const PageGroup& group = groups[blocks_[i].group];
    const double off = blocks_[i].y - level[i] - group.m;
    psi_.push_back(off * weight(off / (6 * group.s)));
  }
  double all = 0, sum = 0, most = 0;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    sum += (groups[k].n - 1) * own_v[k];
    all += groups[k].n - 1;
    if (k > 0) most = std::max(most, groups[k].n - 1.0);
  }
  v = sum / all;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const double own = groups[k].n - 1, d = std::min(most, all - own);
    groups[k].f = d + own;
    groups[k].V = std::max(own_v[k], (d * v + own * own_v[k]) / std::max(d + own, 1.0));
  }
}

double PageModel::after_effects() const {
  std::map<int, std::vector<double>> after;
  std::vector<double> all;
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    if (blocks_[i].session != blocks_[i - 1].session) continue;
    after[blocks_[i - 1].group].push_back(psi_[i]);
    all.push_back(psi_[i]);
  }
  const auto mean = [](const std::vector<double>& of) {
    double sum = 0;
    for (const double value : of) sum += value;
    return sum / static_cast<double>(of.size());
  };
  const double middle = mean(all);
  double between = 0, total = 0;
  for (const auto& [group, of] : after) between += static_cast<double>(of.size()) * std::pow(mean(of) - middle, 2);
  for (const double value : all) total += std::pow(value - middle, 2);
  if (after.size() < 2 || total <= static_cast<double>(all.size()) * least_scale * least_scale) return 1;
  const double numerator = static_cast<double>(after.size()) - 1;
  const double denominator =
      std::max(static_cast<double>(all.size()) - static_cast<double>(groups.size()) - numerator, 1.0);
  return f_tail(between / numerator / ((total - between) / denominator), numerator, denominator);
}

void PageModel::widen() {
  std::set<int> names;
  double squares = 0, products = 0;
  int pairs = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    names.insert(blocks_[i].name);
    squares += psi_[i] * psi_[i];
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      const bool next = blocks_[j].name == blocks_[i].name && blocks_[j].session == blocks_[i].session &&
                        blocks_[j].round == blocks_[i].round + 1;
      if (!next) continue;
      products += psi_[i] * psi_[j];
      ++pairs;
    }
  }
  const auto N = static_cast<double>(blocks_.size());
  if (pairs == 0 || squares <= N * least_scale * least_scale) return;
  r = products / pairs / (squares / N) + static_cast<double>(names.size()) / N;
  if (r > 2 / std::sqrt(pairs)) g = std::sqrt((1 + std::min(r, 0.9)) / (1 - std::min(r, 0.9)));
}

PageInterval PageModel::interval(const PageContrast& contrast, double alpha) const {
  PageInterval out;
  double variance = 0, squares = 0;
  for (const auto& [k, w] : contrast) {
    const PageGroup& of = groups[k];
    const double part = w * w * of.V / of.n;
    out.center += w * of.m;
    variance += part;
    squares += part * part / of.f;
  }
  out.low = out.high = out.center;
  if (variance > 0) {
    out = t_interval(out.center, std::sqrt(variance) * g, std::max(variance * variance / squares, 1.0), alpha);
  }
  const auto [lower, higher] = reach(contrast, alpha);
  out.low += lower;
  out.high += higher;
  return out;
}

std::pair<double, double> PageModel::reach(const PageContrast& contrast, double alpha, int then, int now) const {
  const auto grown = [&](std::size_t count) {
    return static_cast<int>(std::lround(static_cast<double>(count) * then / now));
  };
  std::vector<std::vector<double>> below(groups.size()), above(groups.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const PageGroup& of = groups[blocks_[i].group];
    const double off = blocks_[i].y - level[i] - of.m;
    if (std::abs(off / (6 * of.s)) <= 0.5) continue;
    (off < 0 ? below : above)[blocks_[i].group].push_back(off);
  }
  double apart = 0, all = 0;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    apart += grown(below[k].size()) + grown(above[k].size());
    all += grown(groups[k].n);
  }
  const double q = std::min((apart + 1) / (all + 2), 0.5);
  std::pair<double, double> ends;
  for (const auto& [k, w] : contrast) {
    for (const auto* side : {&below[k], &above[k]}) {
      const int n = grown(groups[k].n), a = grown(side->size());
      if (a == 0 || binomial_tail(n, n - a, q) <= alpha / 2) continue;
      const double shift = w * median(*side);
      (shift < 0 ? ends.first : ends.second) += shift;
    }
  }
  return ends;
}

bool PageModel::reaches(const PageContrast& contrast, double alpha) const {
  return reach(contrast, alpha) != std::pair(0.0, 0.0);
}

int PageModel::rounds_to_settle(const PageContrast& contrast, double alpha, double e) const {
  const PageInterval now = interval(contrast, alpha);
  const double distance = std::abs(std::abs(now.center) - std::log(1 + e));
  int rounds = 1000;
  for (const PageWeight& of : contrast) {
    if (of.group != 0) rounds = std::min(rounds, groups[of.group].n);
  }
  const auto least = [&](auto settles) {
    int n = rounds + 1;
    while (n < 1000 && !settles(n)) ++n;
    return n;
  };
  const int narrow_enough = least([&](int n) {
    const double times = static_cast<double>(n) / rounds;
    return t_tails(distance / (now.error / std::sqrt(times)), now.degrees * times) < alpha;
  });
  if (!reaches(contrast, alpha)) return narrow_enough;
  return std::max(narrow_enough,
                  least([&](int n) { return reach(contrast, alpha, n, rounds) == std::pair(0.0, 0.0); }));
}

}  // namespace harness::method
