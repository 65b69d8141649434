#include "analysis/waterfall.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "program/count.h"

namespace harness::analysis {
namespace {

// Bytes that the operations that are neither products nor attention read and write, on a rank, mean over roles. Older
// files do not say.
std::optional<double> other_bytes(const store::Result& result, int case_index, std::size_t roles) {
  std::optional<double> bytes;
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index != case_index || row.recomputed != 0 || !row.group.empty()) continue;
    if (row.kind == "matmul" || row.kind.starts_with("attention")) continue;
    bytes = bytes.value_or(0) + row.bytes / static_cast<double>(roles);
  }
  return bytes;
}

// The least that a rank's messages of this part can take over the stated links, hidden or not, mean over roles: what it
// sends and what it receives go at once, collectives one after the other. Nothing if the limit of any is not known.
std::optional<double> least_communication_s(const store::Result& result, int case_index, Part part, std::size_t roles) {
  double collectives_s = 0;
  std::map<std::int32_t, double> sent_s, received_s;  // by role
  bool any = false;
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index != case_index || row.group != key_of(part) || row.operations == 0) continue;
    if (!(row.limit_s > 0)) return std::nullopt;
    any = true;
    if (row.kind == "send") {
      sent_s[row.role] += row.limit_s;
    } else if (row.kind == "receive") {
      received_s[row.role] += row.limit_s;
    } else {
      collectives_s += row.limit_s;
    }
  }
  if (!any) return std::nullopt;
  for (const auto& [role, s] : received_s) sent_s[role] = std::max(sent_s[role], s);
  for (const auto& [role, s] : sent_s) collectives_s += s;
  return collectives_s / static_cast<double>(roles);
}

std::string bar_name(Part part) {
  if (part == Part::matrix_products || part == Part::attention) return fmt::format("{} below peak", name_of(part));
  if (part == Part::other_compute) return "memory-bound operations";
  if (part == Part::communication) return "other exposed communication";
  return fmt::format("{}{}", is_exposed_communication(part) && part != Part::world ? "exposed " : "", name_of(part));
}

// What the model needs of a rank at the peak, in seconds. Attention is counted at half its square, the causal half, and
// all else alike in both conventions, so what the two counts differ by is attention's share.
struct IdealSeconds {
  double products = 0, attention = 0, recomputation = 0;

  explicit IdealSeconds(const store::ResultCase& row) {
    const program::DeviceRates all_ranks{.flops = row.ranks * row.peak_flops_per_rank};
    const auto seconds = [&](double flop) { return program::least_time(flop, 0, all_ranks).seconds(); };
    attention = seconds(row.noncausal_flop_per_step - row.model_flop_per_step);
    products = seconds(row.model_flop_per_step) - attention;
    recomputation = seconds(row.hardware_flop_per_step - row.model_flop_per_step);
  }
  double of(Part part) const {
    if (part == Part::matrix_products) return products;
    return part == Part::attention ? attention : 0;
  }
};

void set_roof(const store::Result& result, const CaseBreakdown& breakdown, const IdealSeconds& ideal, Part part,
              WaterfallBar& bar) {
  const std::size_t roles = breakdown.ranks.size();
  if (part == Part::matrix_products || part == Part::attention || part == Part::recomputation) {
    bar.roof_s = part == Part::recomputation ? ideal.recomputation : ideal.of(part);
    bar.roof = "peak FLOP/s";
  } else if (part == Part::other_compute) {
    const std::optional<double> bytes = other_bytes(result, breakdown.case_index, roles);
    if (!bytes || !(result.memory_bytes_per_s > 0)) return;
    bar.roof_s = program::least_time(0, *bytes, {.memory_bytes_per_s = result.memory_bytes_per_s}).seconds();
    bar.roof = breakdown.mean.hidden_s(part) > 0 ? "memory bandwidth, hidden or not" : "memory bandwidth";
  } else if (is_exposed_communication(part)) {
    bar.roof_s = least_communication_s(result, breakdown.case_index, part, roles);
    if (bar.roof_s) bar.roof = "stated links, hidden or not";
  } else {
    bar.roof_s = 0;
    bar.roof = "none needed";
  }
}

}  // namespace

std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown) {
  const store::ResultCase& row = result.at(breakdown);
  const Breakdown& mean = breakdown.mean;
  if (!(row.model_flop_per_step > 0)) return {};  // communication alone has no share of the peak
  if (!summary.mfu || !(summary.step_seconds > 0) || !(mean.step_s > 0)) return {};
  Waterfall w;
  w.case_index = breakdown.case_index;
  w.step_s = summary.step_seconds;
  w.profiled_step_s = mean.step_s;
  w.ideal_s = row.model_flop_per_step / row.ranks / row.peak_flops_per_rank;
  w.mfu = *summary.mfu;
  if (std::isfinite(summary.gpu_utilisation)) w.gpu_utilisation = summary.gpu_utilisation;
  const IdealSeconds ideal(row);
  for (const Part part : all_parts) {
    if (!mean[part] && ideal.of(part) == 0) continue;
    WaterfallBar& bar = w.bars.emplace_back();
    bar.name = bar_name(part);
    bar.part = part;
    bar.seconds = mean[part].value_or(0);
    bar.points = (bar.seconds - ideal.of(part)) / mean.step_s;
    set_roof(result, breakdown, ideal, part, bar);
  }
  // The profiler costs time, and one step is not the median of many.
  WaterfallBar& difference = w.bars.emplace_back();
  difference.name = "profiled step differs from the timed ones";
  difference.seconds = w.step_s - w.profiled_step_s;
  difference.points = w.ideal_s / w.profiled_step_s - w.mfu;
  return w;
}

}  // namespace harness::analysis
