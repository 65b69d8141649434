#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// Fixed units at every size, as in nccl-tests, so that digits can be compared by position.
const Scale microseconds{"us", 1e-6};
const Scale gigabytes_per_s{"GB/s", 1e9};

std::string gigabytes(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? fmt::format("{:.4g}", *bytes_per_s / 1e9) : "";
}

// The baseline or a setting: a column of cases, one for each size; nullptr if the setting has none there.
struct SettingColumn {
  std::string label;  // in headings; "": the baseline alone
  std::vector<const analysis::CaseSummary*> at;
};

// "halving_doubling" for allreduce_algorithm=halving_doubling; the name if the value alone is unclear.
std::string setting_label(const std::string& name) {
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

class TableBySize {
 public:
  TableBySize(const store::Result& result, const analysis::Summary& summary)
      : result_(result),
        summary_(summary),
        on_bus_(measured_by(result) == Measured::collective),
        sizes_(analysis::by_size(result, summary)),
        settings_(setting_columns(result, summary, sizes_)) {
    for (const analysis::CaseSummary* row : sizes_) {
      if (!row->reason.empty()) table_.note(fmt::format("{}: {}", row->name, row->reason));
    }
  }

  Table build() {
    add_size();
    table_.add({.heading = uses_heading, .words = true, .worth = 10}, sizes_,
               [&](Row row) { return uses_of(result_, *row); });
    const bool computes = !on_bus_ && std::ranges::any_of(summary_.cases, [](const analysis::CaseSummary& row) {
      return row.flops_per_rank > 0;
    });
    add_numbers("time", 20, operation_time, on_bus_ ? [](Values) { return microseconds; } : scale_of_seconds);
    if (on_bus_ && settings_.size() == 1)
      add_numbers("algbw", 30, algorithm_rate, [](Values) { return gigabytes_per_s; });
    add_numbers(
        on_bus_ ? "busbw" : "rate", 40, operation_rate,
        computes ? scale_of_flops : [](Values) { return gigabytes_per_s; });
    if (!on_bus_) add_shares();
    table_.add({.heading = "limit GB/s", .worth = 15}, sizes_,
               [](Row row) { return row->rates ? gigabytes(row->rates->limit_bytes_per_s) : ""; });
    if (!summary_.predicted) add_errors();  // a prediction has no results to check
    for (std::size_t s = 1; s < settings_.size(); ++s) add_changes(settings_[s]);
    std::string& legend = table_.columns.front().legend;  // the column that no view leaves out
    if (settings_.size() > 1) {
      legend = fmt::format(
          "Columns are settings: the time of one operation, its {}, and the verdict on the change against the baseline "
          "at the same size. ",
          on_bus_ ? "busbw" : "rate");
    }
    const auto average = on_bus_ ? analysis::average_bus_bandwidth(result_, summary_) : std::nullopt;
    if (average) legend += fmt::format("Average bus bandwidth of the baseline: {} GB/s.", gigabytes(average));
    table_.remove_empty_columns();
    return std::move(table_);
  }

 private:
  using Row = const analysis::CaseSummary*;
  using Value = std::optional<double> (*)(const analysis::CaseSummary&);
  using Values = std::span<const double>;

  static std::optional<double> operation_time(const analysis::CaseSummary& row) {
    return row.rates ? std::optional(row.rates->operation_seconds) : std::nullopt;
  }

  static std::optional<double> algorithm_rate(const analysis::CaseSummary& row) {
    return row.rates ? std::optional(row.rates->algorithm_bytes_per_s) : std::nullopt;
  }

  void add_size() {
    const auto sized = std::ranges::find(result_.cases, store::CaseRole::point, &store::ResultCase::role);
    const auto size_of_row = [&](Row row) {
      if (!on_bus_) return std::string(result_.setting(result_.at(*row), sized->variable));
      const store::ResultPoint* point = result_.find_point(row->case_index);
      return point == nullptr ? result_.at(*row).value : fmt::format("{:.0f}", point->bytes);
    };
    table_.add({.heading = on_bus_ ? "size B" : sized->variable, .words = !on_bus_, .names_cases = true}, sizes_,
               size_of_row);
  }

  void add_numbers(const char* what, int worth, Value value, Scale (*scale_of)(Values)) {
    const auto known = [&](Row row) { return row == nullptr ? std::nullopt : value(*row); };
    std::vector<double> values;
    for (const SettingColumn& setting : settings_) {
      for (const Row row : setting.at) values.push_back(known(row).value_or(0));
    }
    const Scale scale = scale_of(values);
    const auto text = [&](Row row) {
      const auto number = known(row);
      if (!number) return std::string();
      return scale.unit == gigabytes_per_s.unit ? gigabytes(number) : scale.print(*number);
    };
    for (const SettingColumn& setting : settings_) {
      const std::string& label = setting.label;
      table_.add({.heading = fmt::format("{} {}", label.empty() ? what : label, scale.unit), .worth = worth},
                 setting.at, text);
    }
  }

  void add_shares() {
    for (const SettingColumn& setting : settings_) {
      table_.add({.heading = fmt::format("{} of peak", setting.label), .worth = 15}, setting.at, [](Row row) {
        const double mfu = row == nullptr ? 0 : row->mfu.value_or(0);
        return mfu > 0 ? percent(mfu) : "";
      });
    }
  }

  void add_errors() {
    table_.add({.heading = "errors", .worth = 10}, sizes_, [&](Row size) {
      int failed = 0;
      for (const analysis::CaseSummary& row : summary_.cases) {  // the control, too, which has no column of its own
        if (row.case_index == size->case_index || result_.at(row).reference == size->case_index)
          failed += analysis::failed_blocks(result_, row.case_index);
      }
      return std::to_string(failed);
    });
  }

  // "faster -12.3 % [-14.0 %, -10.5 %]" in a single cell, which no writer breaks.
  void add_changes(const SettingColumn& setting) {
    table_.add({.heading = setting.label + " change"}, setting.at, [&](Row row) {
      if (row == nullptr) return Cell();
      std::string text = analysis::name_of(row->judgement);
      for (const std::string& note : case_notes(*row, summary_))
        text += " " + table_.note(fmt::format("{}: {}", row->name, note));
      for (const std::string& more : {change_of(row->effect), interval_of(row->effect)})
        text += more.empty() ? "" : " " + more;
      return Cell(text, tone_of(row->judgement));
    });
  }

  const store::Result& result_;
  const analysis::Summary& summary_;
  const bool on_bus_;
  const std::vector<const analysis::CaseSummary*> sizes_;
  const std::vector<SettingColumn> settings_;
  Table table_;
};

}  // namespace

std::optional<double> operation_rate(const analysis::CaseSummary& row) {
  if (!row.rates) return std::nullopt;
  if (row.rates->bus_bytes_per_s) return row.rates->bus_bytes_per_s;
  return row.flops_per_rank > 0 ? row.flops_per_rank : row.rates->algorithm_bytes_per_s;
}

Table table_by_size(const store::Result& result, const analysis::Summary& summary) {
  return TableBySize(result, summary).build();
}

}  // namespace harness::report
