#include "report/words.h"

#include <fmt/format.h>

#include <optional>

#include "config/experiment.h"
#include "config/registry.h"

namespace harness::report {
namespace {

// The largest unit in which the smallest value is at least 1.
Scale choose(std::span<const double> values, std::initializer_list<Scale> from_largest) {
  double smallest = INFINITY;
  for (const double value : values) {
    if (value > 0) smallest = std::min(smallest, value);
  }
  const auto* const fits = std::ranges::find_if(from_largest, [&](const Scale& s) { return smallest >= s.factor; });
  return std::isfinite(smallest) && fits != from_largest.end() ? *fits : *std::prev(from_largest.end());
}

// "2 others faster, 1 slower": counts all outcomes, minus one of the outcome `told`, which the sentence already names.
std::string counted_outcomes(const std::vector<KnownChange>& changes, std::string_view told = "") {
  std::vector<std::string> parts;
  for (const std::string_view outcome : {"faster", "slower", "same", "unresolved", too_close}) {
    const auto n = std::ranges::count(changes, outcome, &KnownChange::outcome) - (outcome == told ? 1 : 0);
    if (n <= 0) continue;
    const char* before = outcome == "same" ? "the " : "";
    if (outcome == told) before = n == 1 ? "other " : "others ";
    parts.push_back(fmt::format("{} {}{}", n, before, outcome));
  }
  return join(parts, ", ");
}

}  // namespace

std::size_t find_name(const std::vector<std::string>& names, const std::string& name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name || short_name(names[i]) == name) return i;
  fail("there is no case {}{}", quote(name), did_you_mean(nearest(name, names)));
}

std::int32_t find_case(const store::Result& result, const std::string& name) {
  std::vector<std::string> names;
  for (const store::ResultCase& of : result.cases) names.push_back(of.name);
  return static_cast<std::int32_t>(find_name(names, name));
}

std::string setting_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultCase& of = result.at(row);
  return config::case_name({of.variable, of.value, {}, ""});
}

std::vector<ChangesOfSetting> changes_by_setting(const store::Result& result, const analysis::Summary& summary) {
  std::vector<ChangesOfSetting> settings;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.role != store::CaseRole::change) continue;
    const std::string name = setting_of(result, row);
    auto known = std::ranges::find(settings, name, &ChangesOfSetting::first);
    if (known == settings.end()) known = settings.insert(settings.end(), {name, {}});
    known->second.push_back(&row);
  }
  return settings;
}

std::string uses_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr ? "" : point->uses;
}

std::string label_of(const store::Result& result, const analysis::CaseSummary& row) {
  const std::string uses = uses_of(result, row);
  const std::size_t equals = row.name.find('=');
  const bool is_of_a_size =  // a size of the single operation, which the operation's part in the step can replace
      equals != std::string::npos && config::purpose_of(row.name.substr(0, equals)) == config::Purpose::size;
  return !uses.empty() && is_of_a_size ? uses : row.name;
}

std::string share_words(const std::optional<double>& share) {
  return share ? percent(*share) : "";
}

std::string change_words(double ratio) {
  return std::isfinite(ratio) ? signed_percent(ratio - 1) : "";
}

std::string interval_words(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return "";
  constexpr double most = 10;
  const auto end = [](double share) {
    return share > most ? "over " + signed_percent(most, 0) : signed_percent(share);
  };
  return fmt::format("[{}, {}]", end(low - 1), end(high - 1));
}

std::string change_of(const std::optional<analysis::Effect>& effect) {
  return effect ? change_words(effect->ratio) : "";
}

std::string interval_of(const std::optional<analysis::Effect>& effect) {
  return effect ? interval_words(effect->low, effect->high) : "";
}

Tone tone_of(analysis::Verdict verdict) {
  if (analysis::moved(verdict)) return verdict == analysis::Verdict::faster ? Tone::good : Tone::bad;
  return verdict == analysis::Verdict::unresolved ? Tone::open : Tone::plain;
}

Tone tone_of(const analysis::Judgement& judgement) {
  switch (judgement.reason) {
    case analysis::Reason::failed:
    case analysis::Reason::beyond_limit:
    case analysis::Reason::trains_differently:
      return Tone::bad;
    case analysis::Reason::interval:
      return tone_of(judgement.verdict);
    case analysis::Reason::too_close_to_call:
      return Tone::open;
    default:
      return Tone::plain;
  }
}

std::string interval_heading(double confidence) {
  return fmt::format("{:.6g} % interval", 100 * confidence);
}

const char* outcome_of(const analysis::Judgement& judgement, double ratio) {
  if (judgement.reason == analysis::Reason::too_close_to_call) return too_close;
  if (judgement.reason == analysis::Reason::predicted) return ratio < 1 ? "faster" : "slower";
  return analysis::name_of(judgement.verdict);
}

std::string how_much(const KnownChange& change, const std::string& per) {
  const bool faster = change.ratio < 1;
  const double low = faster ? 1 - change.high : change.low - 1;
  const double high = faster ? 1 - change.low : change.high - 1;
  std::string words = fmt::format("{} {} time{}", percent(std::abs(change.ratio - 1)), faster ? "less" : "more", per);
  if (std::isfinite(low) && std::isfinite(high)) words += fmt::format(" [{}, {}]", percent(low), percent(high));
  return words;
}

std::string what_moved(std::vector<KnownChange> changes, double smallest_effect, const std::string& per,
                       bool predicted) {
  std::ranges::stable_sort(changes, {}, &KnownChange::ratio);
  const char* proven = predicted ? "" : "proven ";
  const auto ending = [&](std::string_view told) {
    const std::string rest = counted_outcomes(changes, told);
    return rest.empty() ? "." : "; " + rest + ".";
  };
  const auto fastest = std::ranges::find(changes, std::string_view("faster"), &KnownChange::outcome);
  if (fastest != changes.end()) {
    const std::string throughput =  // larger than the share of time saved; omitted if time is per unit of work
        per.empty() ? fmt::format(", {:.3g} x the throughput", 1 / fastest->ratio) : "";
    return fmt::format("Fastest {}change: {}, {}{}{}", proven, short_name(fastest->name), how_much(*fastest, per),
                       throughput, ending("faster"));
  }
  const auto slowest = std::find_if(changes.rbegin(), changes.rend(),
                                    [](const KnownChange& change) { return change.outcome == "slower"; });
  if (slowest != changes.rend()) {
    return fmt::format("No change is {}faster than the baseline; the slowest: {}, {}{}", proven,
                       short_name(slowest->name), how_much(*slowest, per), ending("slower"));
  }
  if (counted_outcomes(changes).empty()) return "";
  const bool open = std::ranges::find(changes, std::string_view("unresolved"), &KnownChange::outcome) != changes.end();
  return fmt::format("Nothing {} beyond {}{}", open ? "is proven to move" : "moved",
                     analysis::threshold_words(smallest_effect), ending(""));
}

std::string other_trainings_words(std::vector<KnownChange> changes) {
  constexpr std::size_t max_named = 3;
  const auto is_faster = [](const KnownChange& change) { return change.outcome == "faster"; };
  std::vector<std::string> parts;
  for (const KnownChange& change : changes) {
    if (is_faster(change)) parts.push_back(short_name(change.name) + " " + how_much(change, ""));
  }
  if (!parts.empty()) parts = {join_first(parts, max_named)};
  std::erase_if(changes, is_faster);
  if (std::string counts = counted_outcomes(changes); !counts.empty()) parts.push_back(std::move(counts));
  return parts.empty() ? "" : " Another training, per token: " + join(parts, ", ") + ".";
}

std::string Scale::print(double value) const {
  if (!std::isfinite(value)) return "";
  const double scaled = value / factor;
  if (fixed) return fmt::format("{:.4g}", scaled);
  const int whole_digits = scaled >= 1 ? static_cast<int>(std::floor(std::log10(scaled))) + 1 : 1;
  return fmt::format("{:.{}f}", scaled, std::clamp(4 - whole_digits, 0, 3));
}

Scale scale_of_seconds(std::span<const double> values) {
  return choose(values, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}});
}
Scale scale_of_flops(std::span<const double> values) {
  return choose(values, {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}});
}
Scale scale_of_bytes(std::span<const double> values) {
  return choose(values, {{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}});
}

}  // namespace harness::report
