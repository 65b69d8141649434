// Compares predicted with published steps (`make accuracy`). Writes docs/accuracy.md, and the expected errors of its
// predictions into each calibration. Prints the best values of the fitted scalars, and each step, on stderr.
//
// usage: accuracy CONFIGS > accuracy.md

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "accuracy.h"
#include "base/text.h"

namespace harness::accuracy {
namespace {

using Points = std::vector<const Point*>;

std::vector<double> errors_of(const Points& points) {
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const Point* p : points) errors.push_back(p->error());
  return errors;
}

struct Summary {
  std::size_t count = 0;
  double median = 0, mean = 0, nine_of_ten = 0, bias = 0, worst = 0;  // fractions; sizes but for bias and worst
};
Summary summary_of(std::vector<double> errors) {
  Summary s{.count = errors.size()};
  if (errors.empty()) return s;
  for (const double e : errors) {
    s.bias += e / static_cast<double>(s.count);
    s.mean += std::abs(e) / static_cast<double>(s.count);
  }
  std::ranges::sort(errors, {}, [](double e) { return std::abs(e); });
  const auto size_at = [&](double share) {
    return std::abs(errors[static_cast<std::size_t>(std::ceil(share * static_cast<double>(s.count))) - 1]);
  };
  s.median = size_at(0.5);
  s.nine_of_ten = size_at(0.9);
  s.worst = errors.back();
  return s;
}

std::string row_of(const std::string& family, const std::string& name, const std::vector<double>& errors) {
  const Summary s = summary_of(errors);
  return fmt::format("| {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:+.1f} % | {:+.1f} % |\n", family, name,
                     s.count, 100 * s.median, 100 * s.mean, 100 * s.nine_of_ten, 100 * s.bias, 100 * s.worst);
}

// Groups points by the value of a column, sorted by that value.
std::map<std::string, Points> by(const std::string& column, const Points& points) {
  std::map<std::string, Points> sets;
  for (const Point* p : points) sets[p->row.at(column)].push_back(p);
  return sets;
}

Points all_of(const std::vector<Point>& points) {
  Points all;
  for (const Point& p : points) all.push_back(&p);
  return all;
}
Points of_use(const std::vector<Point>& points, bool fitted) {
  Points some = all_of(points);
  std::erase_if(some, [&](const Point* p) { return p->is_fitted() != fitted; });
  return some;
}

// A family's steps: all of them, then those outside and those inside the fit.
std::string steps_text(const std::string& family, const std::vector<Point>& points) {
  const Points held_back = of_use(points, false);
  if (held_back.empty()) return row_of(family, "fitted to", errors_of(all_of(points)));
  return row_of(family, "all", errors_of(all_of(points))) + row_of(family, "not fitted to", errors_of(held_back)) +
         row_of(family, "fitted to", errors_of(of_use(points, true)));
}

// All pairs, and each setting that has several.
std::string changes_text(const std::string& family, const std::vector<Pair>& pairs) {
  if (pairs.empty()) return "";
  std::map<std::string, std::vector<double>> sets;
  std::vector<double> all;
  for (const Pair& pair : pairs) {
    sets[pair.setting].push_back(pair.error());
    all.push_back(pair.error());
  }
  std::string text = row_of(family, "all", all);
  for (const auto& [setting, errors] : sets) {
    if (errors.size() > 1) text += row_of(family, setting, errors);
  }
  return text;
}

std::string values_text(const std::array<double, scalar_count>& v, const std::string& family) {
  std::string text;
  for (std::size_t k = 0; k < scalar_count; ++k)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", scalars(family)[k].key, v[k]);
  return text;
}

struct LeftOut {
  std::string rows;  // table rows, one for each value of the column
  std::map<const Point*, double> each;
  std::vector<double> all() const {
    std::vector<double> errors;
    for (const auto& [point, error] : each) errors.push_back(error);
    return errors;
  }
};
// Predicts each set of points with scalars that are fitted to all others. Fits use only points with `use: fit`.
LeftOut leave_out(const std::string& column, const Points& points, const config::Calibration& calibration) {
  LeftOut out;
  for (const auto& [name, set] : by(column, points)) {
    Points others = points;
    std::erase_if(others, [&](const Point* p) { return p->row.at(column) == name || !p->is_fitted(); });
    const auto values = fitted(others, calibration);
    std::vector<double> errors;
    for (const Point* p : set) {
      errors.push_back(error_with(*p, calibration, values));
      out.each[p] = errors.back();
    }
    out.rows += row_of(calibration.file, name, errors);
  }
  return out;
}

std::string each_text(const std::vector<Point>& points) {
  std::string text = "| step | group | GPUs | published | predicted | error |\n|---|---|---|---|---|---|\n";
  for (const Point& p : points) {
    text += fmt::format("| {} | {} | {} | {:.3f} s | {:.3f} s | {:+.1f} % |\n", p.row.at("id"), p.row.at("group"),
                        p.row.at("gpus"), p.published_s, p.predicted_s[0], 100 * p.error());
  }
  return text;
}

std::string range_text(const std::vector<Point>& points, const char* column) {
  std::set<long long> values;
  for (const Point& p : points) values.insert(std::stoll(p.row.at(column)));
  return fmt::format("{} to {}", *values.begin(), *values.rbegin());
}

// "172 of 184": of the pairs of steps of one group whose published times differ by more than 5 %, those whose shorter
// step is predicted to be shorter.
std::string order_text(const std::vector<Point>& points) {
  constexpr double differ = 0.05;
  int pairs = 0, right = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      const Point &a = points[i], &b = points[k];
      const double published = b.published_s / a.published_s;
      if (a.row.at("group") != b.row.at("group") || a.row.at("gpus") != b.row.at("gpus")) continue;
      if (std::abs(std::log(published)) < std::log1p(differ)) continue;
      const double predicted = b.predicted_s[0] / a.predicted_s[0];
      if (std::abs(predicted - 1) < 1e-6) continue;  // the same step in two releases
      ++pairs;
      right += (published > 1) == (predicted > 1) ? 1 : 0;
    }
  }
  return fmt::format("{} of {}", right, pairs);
}

constexpr const char* renewed_from = "# Written by `make accuracy`";

// The generated part of a calibration file, from the line `renewed_from` to its end.
std::string expected_text(const std::vector<Point>& points, const std::vector<Pair>& pairs, const LeftOut& left_out) {
  std::vector<double> changes;
  for (const Pair& pair : pairs) changes.push_back(pair.error());
  const Summary of_changes = summary_of(changes);
  double largest = 1;
  std::set<std::string> gpus;
  std::string rows;
  for (const Point& p : points) {
    gpus.insert(p.gpu);
    largest = std::max(largest, p.largest_message_bytes);
    rows += fmt::format("  - {{id: {}, gpu: {}, group: {}, lab: {}, error: {:+.1f} %}}\n", p.row.at("id"), p.gpu,
                        p.row.at("group"), p.row.at("lab"), 100 * left_out.each.at(&p));
  }
  constexpr std::size_t enough = 10;  // pairs, for a 90 % quantile
  const std::string change = pairs.size() < enough ? ""
                                                   : fmt::format("changes: {{error: {:.1f} %, error_90: {:.1f} %}}\n",
                                                                 100 * of_changes.median, 100 * of_changes.nine_of_ten);
  return fmt::format(
      "{} from published steps (docs/accuracy.md): what was compared, changes of one\n"
      "# setting, and each step with its group left out of the fit. Steps of your own cluster have `lab: own`.\n"
      "calibrated:\n  gpus: [{}]\n  ranks: {}\n  hidden: {}\n  sequence: {}\n  message_bytes: 1 to {:.0f}\n"
      "{}errors:\n{}",
      renewed_from, fmt::join(gpus, ", "), range_text(points, "gpus"), range_text(points, "hidden"),
      range_text(points, "sequence"), largest, change, rows);
}

void renew(const std::string& path, const std::string& expected) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.empty()) fail("{} cannot be read", path);
  text.resize(std::min(text.size(), text.find(renewed_from)));
  std::ofstream out(path);
  out << text << expected;
  if (!out.flush()) fail("{} cannot be written", path);
}

// The tables of the page, with one family's rows below another's.
struct Page {
  std::string steps, changes, left_out;
  std::vector<std::string> orders;
};

// Adds a family to the page, and rewrites the generated rows of its calibration.
void add_family(Page& page, const std::string& family, const std::vector<Row>& rows, const std::string& configs) {
  const config::Calibration calibration = read_calibration(family, configs);
  const std::vector<config::Calibration> calibrations = around(calibration);
  std::vector<Point> points;
  for (const Row& row : rows) points.push_back(predict(row, configs, calibrations));
  const Points all = all_of(points), fit = of_use(points, true);
  const std::vector<Pair> pairs = pairs_of(points);
  const auto best = fitted(fit, calibration);
  std::cerr << "accuracy: " << family << ", fitted to these steps: " << values_text(best, family) << "\n";
  std::vector<double> with_best;
  for (const Point* p : fit) with_best.push_back(error_with(*p, calibration, best));
  std::cerr << row_of(family, "then about", with_best) << each_text(points);

  page.steps += steps_text(family, points);
  page.changes += changes_text(family, pairs);
  page.orders.push_back(fmt::format("{} ({})", order_text(points), family));
  const LeftOut groups = leave_out("group", all, calibration), gpus = leave_out("gpu", all, calibration);
  page.left_out += row_of(family, "one group at a time", groups.all());
  if (by("lab", all).size() > 1)
    page.left_out += row_of(family, "one lab at a time", leave_out("lab", all, calibration).all());
  page.left_out += row_of(family, "one GPU at a time", gpus.all());
  std::cerr << gpus.rows;
  renew(fmt::format("{}/calibration/{}.yaml", configs, family), expected_text(points, pairs, groups));
}

constexpr const char* introduction =
    "# Accuracy of predictions\n\n"
    "How far predictions are from published steps (`configs/published/steps.csv`), by calibration, which is a family "
    "of\n"
    "software. `make accuracy` writes this page and the errors in `configs/calibration`, and prints each step. An "
    "error\n"
    "is predicted / published - 1; median, mean and `9 of 10 within` are of its size, `bias` is the mean with "
    "signs.\n\n";

std::string head_of(const char* set, const char* number) {
  return fmt::format(
      "| calibration | {} | {} | median | mean | 9 of 10 within | bias | worst |\n|---|---|---|---|---|---|---|---|\n",
      set, number);
}

int write(const std::string& configs) {
  std::map<std::string, std::vector<Row>> families;
  for (const Row& row : config::read_published(configs + "/published/steps.csv"))
    families[row.at("family")].push_back(row);
  Page page;
  for (const auto& [family, rows] : families) add_family(page, family, rows, configs);
  std::cout
      << introduction << "## Steps\n\n"
      << head_of("steps", "number") << page.steps
      << "\nPairs of steps of one group on as many GPUs, more than 5 % apart, that are predicted in the right order:\n"
      << fmt::format("{}.\n\n", fmt::join(page.orders, ", ")) << "## Changes of one setting\n\n"
      << "Pairs of steps that differ in one setting, by the ratio of the two; settings with two pairs or more.\n\n"
      << head_of("what changes", "pairs") << page.changes << "\n## Left out of the fit\n\n"
      << "Three numbers of a calibration are fitted to its steps. Here each step is predicted with those that are\n"
      << "fitted to the others: without its group, its lab, or its GPU.\n\n"
      << head_of("left out", "steps") << page.left_out;
  return 0;
}

}  // namespace
}  // namespace harness::accuracy

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: accuracy CONFIGS\n";
    return 2;
  }
  try {
    return harness::accuracy::write(argv[1]);
  } catch (const harness::Error& e) {
    std::cerr << "accuracy: " << e.what() << "\n";
    return 1;
  }
}
