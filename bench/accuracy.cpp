// Compares predicted with published steps: writes docs/accuracy.md, and into the calibration what may be expected of
// its predictions: `make accuracy`. On stderr it says which values the fitted scalars should have, and each step.
//
// usage: accuracy published_steps.csv CONFIGS > accuracy.md

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "accuracy_fit.h"
#include "accuracy_points.h"
#include "base/error.h"

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
  double median = 0, mean = 0, nine_of_ten = 0, bias = 0, worst = 0;  // shares; sizes but for bias and worst
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

constexpr const char* summary_head =
    "| {} | {} | median | mean | 9 of 10 within | bias | worst |\n|---|---|---|---|---|---|---|\n";
std::string row_of(const std::string& name, const std::vector<double>& errors) {
  const Summary s = summary_of(errors);
  return fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:+.1f} % | {:+.1f} % |\n", name, s.count,
                     100 * s.median, 100 * s.mean, 100 * s.nine_of_ten, 100 * s.bias, 100 * s.worst);
}

// By the value of a column, in the order of the names.
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

std::string steps_text(const std::vector<Point>& points) {
  std::string text = fmt::format(fmt::runtime(summary_head), "set", "steps");
  text += row_of("all", errors_of(all_of(points)));
  for (const bool fitted : {false, true}) {
    const Points some = of_use(points, fitted);
    text += row_of(fitted ? "**fitted to**" : "**not fitted to**", errors_of(some));
    for (const auto& [source, set] : by("source", some)) text += row_of(source, errors_of(set));
  }
  return text;
}

std::string changes_text(const std::vector<Pair>& pairs) {
  std::map<std::string, std::vector<double>> sets;
  std::vector<double> all;
  for (const Pair& pair : pairs) {
    sets[pair.setting].push_back(pair.error());
    all.push_back(pair.error());
  }
  std::string text = fmt::format(fmt::runtime(summary_head), "what changes", "pairs");
  text += row_of("all", all);
  for (const auto& [setting, errors] : sets) text += row_of(setting, errors);
  return text;
}

std::string values_text(const std::array<double, scalar_count>& v) {
  return fmt::format("{:.1f} %, {:.1f} us, {:.1f} %", 100 * v[0], 1e6 * v[1], 100 * v[2]);
}

struct LeftOut {
  std::string rows;            // of the table
  std::vector<double> errors;  // of every point
};
// The points of a set as predicted with scalars that are fitted to all others.
LeftOut leave_out(const std::string& column, const Points& points, const std::string& configs,
                  const config::Calibration& calibration) {
  LeftOut out;
  for (const auto& [name, set] : by(column, points)) {
    Points others = points;
    std::erase_if(others, [&](const Point* p) { return p->row.at(column) == name; });
    const auto values = fitted(others, calibration);
    config::Calibration without = calibration;
    for (std::size_t k = 0; k < scalar_count; ++k) scalars()[k].set(without, values[k]);
    std::vector<double> errors;
    errors.reserve(set.size());
    for (const Point* p : set) errors.push_back(predict(p->row, configs, {&without, 1}).error());
    std::string row = row_of(name, errors);
    row.pop_back();
    out.rows += fmt::format("{} {} |\n", row, values_text(values));
    out.errors.insert(out.errors.end(), errors.begin(), errors.end());
  }
  return out;
}

std::string each_text(const std::vector<Point>& points) {
  std::string text =
      "| step | fitted to | GPU | GPUs | hidden | published | predicted | error |\n|---|---|---|---|---|---|---|---|\n";
  for (const Point& p : points) {
    text += fmt::format("| {} | {} | {} | {} | {} | {:.3f} s | {:.3f} s | {:+.1f} % |\n", p.row.at("id"),
                        p.is_fitted() ? "yes" : "no", p.row.at("gpu"), p.row.at("gpus"), p.row.at("hidden"),
                        p.published_s, p.predicted_s[0], 100 * p.error());
  }
  return text;
}

// "62 on a100-sxm-80gb, 1 on h100-sxm"
std::string gpus_text(const Points& points) {
  std::string text;
  for (const auto& [gpu, set] : by("gpu", points))
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", set.size(), gpu);
  return text;
}

std::string range_text(const std::vector<Point>& points, const char* column) {
  std::int64_t least = std::stoll(points.front().row.at(column)), most = least;
  for (const Point& p : points) {
    least = std::min(least, static_cast<std::int64_t>(std::stoll(p.row.at(column))));
    most = std::max(most, static_cast<std::int64_t>(std::stoll(p.row.at(column))));
  }
  return fmt::format("{} to {}", least, most);
}

constexpr const char* renewed_from = "# Written by `make accuracy`";

// What a calibration file says of its predictions: from the line `renewed_from` to its end.
std::string expected_text(const std::vector<Point>& points, const std::vector<Pair>& pairs, const Summary& of_new_gpu) {
  std::vector<double> changes;
  for (const Pair& pair : pairs) changes.push_back(pair.error());
  const Summary steps = summary_of(errors_of(all_of(points))), of_changes = summary_of(changes);
  double largest = 1;
  std::string gpus;
  for (const auto& [gpu, set] : by("gpu", all_of(points))) {
    gpus += (gpus.empty() ? "" : ", ") + gpu;
    for (const Point* p : set) largest = std::max(largest, p->largest_message_bytes);
  }
  return fmt::format(
      "{}: how far these predictions are from published steps, means and what 9 of 10 do not\n"
      "# exceed, on a new GPU too; and what those steps were (docs/accuracy.md).\n"
      "validation:\n  steps: {}\n  step_error: {:.1f} %\n  step_error_90: {:.1f} %\n"
      "  changes: {}\n  change_error: {:.1f} %\n  change_error_90: {:.1f} %\n"
      "  new_gpu_error: {:.1f} %\n  new_gpu_error_90: {:.1f} %\n"
      "calibrated:\n  gpus: [{}]\n  ranks: {}\n  hidden: {}\n  sequence: {}\n  message_bytes: 1 to {:.0f}\n",
      renewed_from, steps.count, 100 * steps.mean, 100 * steps.nine_of_ten, of_changes.count, 100 * of_changes.mean,
      100 * of_changes.nine_of_ten, 100 * of_new_gpu.mean, 100 * of_new_gpu.nine_of_ten, gpus,
      range_text(points, "gpus"), range_text(points, "hidden"), range_text(points, "sequence"), largest);
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

int write(const std::string& csv, const std::string& configs) {
  const config::Calibration calibration = read_calibration(configs);
  const std::vector<config::Calibration> calibrations = around(calibration);
  std::vector<Point> points;
  for (const Row& row : read_rows(csv)) {
    const std::size_t needed = row.at("use") == "fit" ? calibrations.size() : 1;
    points.push_back(predict(row, configs, std::span(calibrations).first(needed)));
  }
  const Points fit = of_use(points, true);
  const std::vector<Pair> pairs = pairs_of(points);
  if (pairs.empty()) fail("{}: no two steps differ in one setting, so nothing is known of changes", csv);
  const auto best = fitted(fit, calibration);
  std::cerr << "accuracy: fitted to these steps: " << values_text(best) << "\n";
  std::vector<double> with_best;
  for (const Point* p : fit) with_best.push_back(error_with(*p, calibration, best));
  std::cerr << row_of("then about", with_best);

  const LeftOut left_out = leave_out("gpu", fit, configs, calibration);
  std::cout
      << "# Accuracy of predictions\n\n"
         "How far predictions are from published steps of Megatron-LM, with the calibration `megatron-2022`.\n"
         "`make accuracy` writes this page and prints each step. Configurations and sources:\n"
         "`bench/published_steps.csv`. Three numbers of the calibration are fitted to some of the steps;\n"
         "the others only judge. Where a paper has FLOP/s and no times, the time follows by its own formula\n"
         "(arXiv:2104.04473, equation 3), with the micro-batches of Megatron-LM's scripts for the table.\n\n"
         "The published steps by GPU: "
      << gpus_text(all_of(points))
      << ".\n\n"
         "An error is predicted / published - 1; below zero, the prediction is too short. Median, mean and\n"
         "`9 of 10 within` are of its size; `bias` is the mean with signs.\n\n"
         "## Steps\n\n"
      << steps_text(points)
      << "\n## Changes\n\n"
         "Pairs of steps that differ in one setting, by the ratio of the two. What `9 of 10 within` of all covers\n"
         "is too close to call.\n\n"
      << changes_text(pairs)
      << "\n## Left out\n\n"
         "Each GPU, and each source, predicted with the three scalars (share of the peak, host time of an\n"
         "operation, share of the network) fitted to all others. `plan` states these errors for a GPU on which no\n"
         "step was measured (`uncalibrated`). One step cannot fix three numbers, so they stay near what is\n"
         "published of them (87 %, 8 us, 92 %).\n\n"
         "| left out | steps | median | mean | 9 of 10 within | bias | worst | fitted to the others |\n"
         "|---|---|---|---|---|---|---|---|\n"
      << left_out.rows << leave_out("source", fit, configs, calibration).rows;
  std::cerr << each_text(points);
  renew(configs + "/calibration/megatron-2022.yaml", expected_text(points, pairs, summary_of(left_out.errors)));
  return 0;
}

}  // namespace
}  // namespace harness::accuracy

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: accuracy published_steps.csv CONFIGS\n";
    return 2;
  }
  try {
    return harness::accuracy::write(argv[1], argv[2]);
  } catch (const harness::Error& e) {
    std::cerr << "accuracy: " << e.what() << "\n";
    return 1;
  }
}
