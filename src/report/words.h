#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness {

/// What moved and how sure that is, in one sentence.
std::string headline(const Result& result, const Summary& summary);

/// What holds for the whole table: backend, model, common settings, the formulas and where the peak came from. A
/// paragraph each.
std::vector<std::string> context(const Result& result, const Summary& summary);

/// A unit that suits these values, and how to print one in it with four digits.
struct Scale {
  std::string unit;
  double factor = 1;                      // of the SI unit
  std::string print(double value) const;  // "" for NaN
};
Scale scale_of_seconds(std::span<const double> values);
Scale scale_of_flops(std::span<const double> values);
Scale scale_of_bytes(std::span<const double> values);

/// The word of `workload` for the baseline ("gpt"): files of earlier versions knew no other.
std::string workload_of(const Result& result);

std::string percent(double share, int decimals = 1);         // "12.3 %"
std::string signed_percent(double share, int decimals = 1);  // "+12.3 %"

}  // namespace harness
