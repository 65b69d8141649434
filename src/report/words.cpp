#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/registry.h"

namespace harness::report {
namespace {

// The settings of a change of this variable; nothing for one of another, or of a file that another version wrote.
std::optional<config::Settings> settings_of(std::string_view change, std::string_view variable) {
  if (!change.starts_with(variable) || change.substr(variable.size(), 1) != "=") return std::nullopt;
  config::Settings settings;
  try {
    config::find_variable(variable)->parse(settings, change.substr(variable.size() + 1));
  } catch (const Error&) {
    return std::nullopt;
  }
  return settings;
}

std::string short_change(const std::string& change) {
  if (std::string layout = short_layout(change); !layout.empty()) return layout;
  if (const auto settings = settings_of(change, "env")) {
    std::vector<std::string> entries;
    for (const auto& [name, value] : settings->env) entries.push_back(fmt::format("{}={}", name, value));
    return join(entries, " ");
  }
  const std::size_t equals = change.find('=');
  const std::string value = equals == std::string::npos ? "" : change.substr(equals + 1);
  if (value != "true" && value != "false") return change;
  return change.substr(0, equals) + (value == "true" ? " on" : " off");
}

constexpr double max_share = 10, min_share = -0.9;

// An end of an interval.
std::string bound(double ratio, double other) {
  const double share = ratio - 1, other_share = other - 1;
  if (share > max_share) return "over " + signed_percent(max_share, 0);
  if (share < min_share && !(other_share < min_share)) return "under " + signed_percent(min_share, 0);
  return signed_percent(share);
}

// Effects with a verdict, the smallest ratio first.
std::vector<KnownChange> those_that_are(const std::vector<KnownChange>& changes, analysis::Verdict verdict) {
  std::vector<KnownChange> found;
  std::ranges::copy_if(changes, std::back_inserter(found),
                       [&](const KnownChange& change) { return change.verdict == verdict; });
  std::ranges::stable_sort(found, {}, &KnownChange::ratio);
  return found;
}

// The largest unit in which the smallest value is at least 1.
Scale choose(std::span<const double> values, std::initializer_list<Scale> from_largest) {
  double smallest = INFINITY;
  for (const double value : values) {
    if (value > 0 && value < smallest) smallest = value;
  }
  Scale chosen = *std::prev(from_largest.end());
  if (!std::isfinite(smallest)) return chosen;
  for (const Scale& scale : from_largest) {
    if (smallest >= scale.factor) return scale;
  }
  return chosen;
}

}  // namespace

std::string short_layout(std::string_view name) {
  const auto settings = settings_of(name, "layout");
  return settings ? program::label_of(settings->layout) : "";
}

std::string short_name(const std::string& name) {
  constexpr std::string_view between = " + ";
  std::vector<std::string> changes;
  std::size_t begin = 0;
  for (std::size_t at; (at = name.find(between, begin)) != std::string::npos; begin = at + between.size())
    changes.push_back(short_change(name.substr(begin, at - begin)));
  changes.push_back(short_change(name.substr(begin)));
  return join(changes, std::string(between));
}

std::int32_t find_case(const store::Result& result, const std::string& name) {
  std::vector<std::string> names;
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    names.push_back(result.case_at(i).name);
    if (names.back() == name || short_name(names.back()) == name) return i;
  }
  fail("there is no case {}{}", quote(name), did_you_mean(nearest(name, names)));
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

std::string label_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  const std::size_t equals = row.name.find('=');
  const bool is_of_a_size =  // of the one operation; what the step has of it can then stand for its name
      equals != std::string::npos && config::purpose_of(row.name.substr(0, equals)) == config::Purpose::size;
  return point != nullptr && !point->uses.empty() && is_of_a_size ? point->uses : row.name;
}

std::string program_of(const store::Result& result) {
  const std::string program = value_of(result.identity, "harness");
  return program.empty() ? result.tool_version : program;
}

std::string the_rest(std::size_t faster, std::vector<std::pair<std::size_t, const char*>> others) {
  others.insert(others.begin(), {faster, faster == 1 ? "other faster" : "others faster"});
  const std::string words = counted(others);
  return words.empty() ? "." : fmt::format("; {}.", words);
}

std::string counted(const std::vector<std::pair<std::size_t, const char*>>& counts) {
  std::vector<std::string> parts;
  for (const auto& [n, what] : counts) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, what));
  }
  return join(parts, ", ");
}

std::string change_words(double ratio) {
  return std::isfinite(ratio) ? signed_percent(ratio - 1) : "";
}

std::string interval_words(double low, double high) {
  if (std::isnan(low) || std::isnan(high)) return "";
  if (low - 1 > max_share) return fmt::format("[{}]", bound(low, high));
  return fmt::format("[{}, {}]", bound(low, high), bound(high, low));
}

std::string change_of(const std::optional<analysis::Effect>& effect) {
  return effect ? change_words(effect->ratio) : "";
}

std::string interval_of(const std::optional<analysis::Effect>& effect) {
  return effect ? interval_words(effect->low, effect->high) : "";
}

Cell change_cell(double ratio) {
  Cell cell = change_words(ratio);
  if (std::isfinite(ratio)) cell.key = std::round(1000 * (ratio - 1));
  return cell;
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
  return fmt::format("{:.3g} % interval", 100 * confidence);
}

std::string how_much(const KnownChange& change, const std::string& per) {
  const bool faster = change.ratio < 1;
  const double low = faster ? 1 - change.high : change.low - 1;
  const double high = faster ? 1 - change.low : change.high - 1;
  return fmt::format("{} {} time{} [{}, {}]", percent(std::abs(change.ratio - 1)), faster ? "less" : "more", per,
                     percent(low), percent(high));
}

std::string throughput_words(double ratio, const std::string& per) {
  return per.empty() ? fmt::format(", {:.3g} x the throughput", 1 / ratio) : "";
}

std::string what_moved(const std::vector<KnownChange>& changes, const Asked& asked) {
  using enum analysis::Verdict;
  const std::vector<KnownChange> all_faster = those_that_are(changes, faster),
                                 all_slower = those_that_are(changes, slower), all_same = those_that_are(changes, same);
  const std::size_t open = those_that_are(changes, unresolved).size(), alike = all_same.size();
  const std::string threshold = analysis::threshold_words(asked.smallest_effect);
  if (!all_faster.empty()) {
    const KnownChange& best = all_faster.front();
    return fmt::format(
        "Fastest proven change: {}, {}{}{}", best.name, how_much(best, asked.per),
        throughput_words(best.ratio, asked.per),
        the_rest(all_faster.size() - 1, {{all_slower.size(), "slower"}, {alike, "the same"}, {open, "unresolved"}}));
  }
  if (!all_slower.empty()) {
    const std::size_t n = all_slower.size();
    return fmt::format("No change is proven faster than the baseline; {}: {}, {}{}",
                       n == 1 ? "the slowest" : fmt::format("the slowest of {}", n), all_slower.back().name,
                       how_much(all_slower.back(), asked.per),
                       the_rest(0, {{alike, "the same"}, {open, "unresolved"}}));
  }
  if (alike > 0 && open == 0) {
    return fmt::format("Nothing moved beyond {}: {} came out the same as the baseline.", threshold,
                       alike == 1 ? all_same.front().name : fmt::format("all {} changes", alike));
  }
  if (open == 0) return "";
  return fmt::format("Nothing is proven to move beyond {}: of {} changes {} unresolved{}.", threshold, asked.changes,
                     open == 1 ? "1 is" : fmt::format("{} are", open),
                     alike > 0 ? fmt::format(", {} the same", alike) : "");
}

std::string Scale::print(double value) const {
  if (!std::isfinite(value)) return "";
  const double scaled = value / factor;
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
