#include "analysis/waits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace harness {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The smallest that is a number; infinite if there is none.
double least(const std::vector<double>& seconds, const Places::Members& of) {
  double found = std::numeric_limits<double>::infinity();
  for (int i = 0; i < of.count; ++i) {
    const auto rank =
        static_cast<std::size_t>(of.first) + static_cast<std::size_t>(i) * static_cast<std::size_t>(of.stride);
    if (rank < seconds.size() && seconds[rank] < found) found = seconds[rank];
  }
  return found;
}

}  // namespace

bool is_collective(const std::string& kind) {
  constexpr std::array<std::string_view, 5> kinds{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                  "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(const std::string& kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

Places::Places(const ResultCase& one) : ranks(std::max(one.ranks, 1)) {
  const std::int64_t product =
      std::int64_t{one.tensor_parallel} * std::int64_t{one.data_parallel} * std::int64_t{one.pipeline_parallel};
  if (one.tensor_parallel < 1 || one.data_parallel < 1 || one.pipeline_parallel < 1 || product != ranks) {
    data = ranks;  // not the layout we know: everybody with everybody
    return;
  }
  tensor = one.tensor_parallel, data = one.data_parallel, pipeline = one.pipeline_parallel;
}

Places::Members Places::members(int rank, const std::string& stream) const {
  const int stage = stage_of(rank) * stage_ranks();
  if (stream == "tensor") return {rank / tensor * tensor, tensor, 1};
  if (stream == "data") return {stage + rank % tensor, data, tensor};
  return {stage, stage_ranks(), 1};
}

Waits::Waits(const Result& result, int case_index) : places_(result.cases[static_cast<std::size_t>(case_index)]) {
  for (const ResultTotal& row : result.totals) {
    if (row.case_index != case_index || row.rank < 0 || row.rank >= places_.ranks) continue;
    if (!is_collective(row.kind) || !std::isfinite(row.seconds)) continue;
    auto& seconds = seconds_[{row.stream, row.kind}];
    if (seconds.empty()) seconds.assign(static_cast<std::size_t>(places_.ranks), nan);
    seconds[static_cast<std::size_t>(row.rank)] = row.seconds;
  }
}

const std::vector<double>* Waits::seconds(const std::string& stream, const std::string& kind) const {
  const auto found = seconds_.find({stream, kind});
  return found == seconds_.end() ? nullptr : &found->second;
}

double Waits::for_members(int rank, const std::string& stream, const std::string& kind) const {
  const auto* all = seconds(stream, kind);
  if (all == nullptr || rank < 0 || rank >= places_.ranks) return 0;
  const double mine = (*all)[static_cast<std::size_t>(rank)];
  const double fastest = least(*all, places_.members(rank, stream));
  return mine > 0 && fastest < mine ? (mine - fastest) / mine : 0;
}

double Waits::for_stages(int rank, const std::string& stream, const std::string& kind) const {
  const auto* all = seconds(stream, kind);
  if (all == nullptr || rank < 0 || rank >= places_.ranks) return 0;
  const double mine = (*all)[static_cast<std::size_t>(rank)];
  const double own = least(*all, places_.members(rank, stream)), any = least(*all, {0, places_.ranks, 1});
  return mine > 0 && any < own ? std::min((own - any) / mine, 1.0) : 0;
}

double Waits::total(int rank) const {
  double sum = 0;
  for (const auto& [key, seconds] : seconds_) {
    const double mine = seconds[static_cast<std::size_t>(rank)];
    if (std::isfinite(mine)) sum += mine;
  }
  return sum;
}

}  // namespace harness
