#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// At every size, as in nccl-tests.
const Scale microseconds{"us", 1e-6};

// The baseline or a setting: a column of cases, one for each size; nullptr if the setting has none there.
struct SettingColumn {
  std::string label;  // in headings; "": the baseline alone
  std::vector<const analysis::CaseSummary*> at;
};

// "halving_doubling" for allreduce_algorithm=halving_doubling; the name if the value alone is unclear.
std::string setting_label(const std::string& name) {
  if (const auto parts = split_text(name, " + "); parts.size() > 1) {
    std::vector<std::string> labels;
    for (const std::string& part : parts) labels.push_back(setting_label(part));
    return join(labels, " + ");
  }
  if (name.starts_with("in_place=")) return name.ends_with("true") ? "in place" : "out of place";
  const std::string value = name.substr(std::min(name.find('=') + 1, name.size()));
  const bool is_word = !value.empty() && value.find_first_of("={+") == std::string::npos && value != "true" &&
                       value != "false" && value.find_first_not_of("0123456789. ") != std::string::npos;
  return is_word ? value : short_name(name);
}

std::vector<SettingColumn> setting_columns(const store::Result& result, const analysis::Summary& summary,
                                           const std::vector<const analysis::CaseSummary*>& sizes) {
  const auto changes = changes_by_setting(result, summary);
  std::vector<SettingColumn> settings{{changes.empty() ? "" : "baseline", sizes}};
  for (const auto& [name, cases] : changes) {
    const std::string label = setting_label(name);
    const bool taken = std::ranges::find(settings, label, &SettingColumn::label) != settings.end();
    SettingColumn& setting = settings.emplace_back();
    setting.label = taken ? name : label;
    setting.at.resize(sizes.size());
    for (const analysis::CaseSummary* row : cases) {
      const auto size = std::ranges::find(sizes, result.at(*row).reference, &analysis::CaseSummary::case_index);
      if (size != sizes.end()) setting.at[static_cast<std::size_t>(size - sizes.begin())] = row;
    }
  }
  return settings;
}

// A number of every setting, in a unit that suits all of them. `what` is the heading if the baseline is alone.
template <class Value>
void add_numbers(const std::vector<SettingColumn>& settings, const char* what, int worth, const Value& value,
                 Scale (*scale_of)(std::span<const double>), Table& table) {
  const auto known = [&](const analysis::CaseSummary* row) { return row == nullptr ? std::nullopt : value(*row); };
  std::vector<double> values;
  for (const SettingColumn& setting : settings) {
    for (const analysis::CaseSummary* row : setting.at) values.push_back(known(row).value_or(0));
  }
  const Scale scale = scale_of(values);
  for (const SettingColumn& setting : settings) {
    const std::string heading = setting.label.empty() ? what : setting.label;
    table.add({.heading = fmt::format("{} {}", heading, scale.unit), .worth = worth, .also = what}, setting.at,
              [&](const analysis::CaseSummary* row) {
                const auto number = known(row);
                return number ? scale.print(*number) : "";
              });
  }
}

// Counts the failed blocks of the control, too, which has no column of its own.
int errors_at(const store::Result& result, const analysis::Summary& summary, std::int32_t size) {
  int failed = 0;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.case_index == size || result.at(row).reference == size)
      failed += analysis::failed_blocks(result, row.case_index);
  }
  return failed;
}

// "faster -12.3 % [-14.0 %, -10.5 %]" in a single cell, which no writer breaks. `is_one_of_many`: a narrow table omits
// the interval.
Cell change_cell(const analysis::CaseSummary& row, const analysis::Summary& summary, bool is_one_of_many,
                 Table& table) {
  std::vector<std::string> words{analysis::name_of(row.judgement)};
  for (const std::string& note : case_notes(row, summary)) words.push_back(table.note(note));
  words.push_back(change_of(row.effect));
  std::erase(words, "");
  const std::string brief = join(words, " "), interval = interval_of(row.effect);
  return {interval.empty() ? brief : brief + " " + interval, tone_of(row.judgement), is_one_of_many ? brief : ""};
}

}  // namespace

std::optional<double> operation_rate(const analysis::CaseSummary& row) {
  if (!row.rates) return std::nullopt;
  if (row.rates->bus_bytes_per_s) return row.rates->bus_bytes_per_s;
  return row.flops_per_rank > 0 ? row.flops_per_rank : row.rates->algorithm_bytes_per_s;
}

Table table_by_size(const store::Result& result, const analysis::Summary& summary) {
  using Row = const analysis::CaseSummary*;
  using Values = std::span<const double>;
  const bool on_bus = measured_by(result) == Measured::collective;
  const std::vector<Row> sizes = analysis::by_size(result, summary);
  const std::vector<SettingColumn> settings = setting_columns(result, summary, sizes);
  const char* rate = on_bus ? "busbw" : "rate";
  Table table;
  for (const Row row : sizes) {
    if (!row->reason.empty()) table.note(fmt::format("{}: {}", short_name(row->name), row->reason));
  }
  const auto sized = std::ranges::find(result.cases, store::CaseRole::point, &store::ResultCase::role);
  table.add({.heading = on_bus ? "size B" : sized->variable, .words = !on_bus, .names_cases = true}, sizes,
            [&](Row row) {
              if (!on_bus) return std::string(result.setting(result.at(*row), sized->variable));
              const store::ResultPoint* point = result.find_point(row->case_index);
              return point == nullptr ? result.at(*row).value : fmt::format("{:.0f}", point->bytes);
            });
  table.add({.heading = uses_heading, .words = true, .worth = 10}, sizes,
            [&](Row row) { return uses_of(result, *row); });
  const auto of_rates = [](double analysis::Rates::*member) {
    return [member](const analysis::CaseSummary& row) {
      return row.rates ? std::optional((*row.rates).*member) : std::nullopt;
    };
  };
  const auto fixed = [](Values) { return gigabytes_per_s; };
  add_numbers(settings, "time", 20, of_rates(&analysis::Rates::operation_seconds),
              on_bus ? [](Values) { return microseconds; } : scale_of_seconds, table);
  if (on_bus && settings.size() == 1)
    add_numbers(settings, "algbw", 30, of_rates(&analysis::Rates::algorithm_bytes_per_s), fixed, table);
  const bool in_flops = !on_bus && std::ranges::any_of(summary.cases, [](const analysis::CaseSummary& row) {
    return row.flops_per_rank > 0;
  });
  add_numbers(settings, rate, 40, operation_rate, in_flops ? scale_of_flops : fixed, table);
  for (const SettingColumn& setting : settings) {
    if (on_bus) break;
    table.add({.heading = setting.label + " of peak", .worth = 15}, setting.at, [](Row row) {
      const double mfu = row == nullptr ? 0 : row->mfu.value_or(0);
      return mfu > 0 ? percent(mfu) : "";
    });
  }
  table.add({.heading = "limit GB/s", .worth = 15}, sizes, [](Row row) {
    const auto limit = row->rates ? row->rates->limit_bytes_per_s : std::nullopt;
    return limit ? gigabytes_per_s.print(*limit) : "";
  });
  if (!summary.predicted) {  // a prediction has no results to check
    table.add({.heading = "errors", .worth = 10}, sizes,
              [&](Row row) { return std::to_string(errors_at(result, summary, row->case_index)); });
  }
  const bool are_many = settings.size() > 3;  // with the baseline: three changes with intervals are 100 columns wide
  for (const SettingColumn& setting : std::span(settings).subspan(1)) {
    table.add({.heading = setting.label + " change", .also = "verdict interval"}, setting.at,
              [&](Row row) { return row == nullptr ? Cell() : change_cell(*row, summary, are_many, table); });
  }
  std::string& legend = table.columns.front().legend;  // the column that no view leaves out
  if (settings.size() > 1) {
    legend = fmt::format(
        "Columns are settings: the time of one operation, its {}, and the verdict on the change against the baseline "
        "at the same size. ",
        rate);
  }
  const auto average = on_bus ? analysis::average_bus_bandwidth(result, summary) : std::nullopt;
  if (average)
    legend += fmt::format("Average bus bandwidth of the baseline: {} GB/s.", gigabytes_per_s.print(*average));
  table.remove_empty_columns();
  return table;
}

}  // namespace harness::report
