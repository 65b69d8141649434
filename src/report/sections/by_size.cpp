#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "analysis/summary.h"
#include "base/text.h"
#include "report/document.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

// As nccl-tests prints it, whatever the size: a reader compares numbers by place.
constexpr double microsecond = 1e-6;

std::string microseconds(double seconds) {
  return Scale{"us", microsecond}.print(seconds);
}

std::string gigabytes(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? fmt::format("{:.4g}", *bytes_per_s / 1e9) : "";
}

using Column = std::pair<Table::Column, std::string (*)(const store::Result&, const analysis::CaseSummary&)>;

std::string size_cell(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr ? result.at(row).value : fmt::format("{:.0f}", point->bytes);
}

std::string count_cell(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr || point->count == 0 ? "" : std::to_string(point->count);
}

std::string uses_cell(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point == nullptr ? "" : point->uses;
}

const std::vector<Column>& columns() {
  using R = store::Result;
  using C = analysis::CaseSummary;
  static const std::vector<Column> all{
      {{"size B"}, size_cell},
      {{"count"}, count_cell},
      {{"type"}, [](const R& r, const C& c) { return std::string(r.setting(r.at(c), "precision")); }},
      {{.heading = uses_heading, .words = true}, uses_cell},
      {{"time us"}, [](const R&, const C& c) { return c.rates ? microseconds(c.rates->operation_seconds) : ""; }},
      {{"algbw GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->algorithm_bytes_per_s) : ""; }},
      {{"busbw GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->bus_bytes_per_s) : ""; }},
      {{"limit GB/s"}, [](const R&, const C& c) { return c.rates ? gigabytes(c.rates->limit_bytes_per_s) : ""; }},
      {{"errors"},
       [](const R& r, const C& c) {
         return c.status == store::CaseStatus::impossible ? ""
                                                          : std::to_string(analysis::failed_blocks(r, c.case_index));
       }},
  };
  return all;
}

// The baseline or a setting: a column of cases, one for each size; nullptr where the setting has none.
struct SettingColumn {
  std::string name, label;  // label: in the headings
  std::vector<const analysis::CaseSummary*> at;
};

std::vector<SettingColumn> setting_columns(const store::Result& result, const analysis::Summary& summary,
                                           const std::vector<const analysis::CaseSummary*>& sizes) {
  std::vector<SettingColumn> settings{{"baseline", "baseline", sizes}};
  for (const auto& [name, cases] : changes_by_setting(result, summary)) {
    SettingColumn& setting = settings.emplace_back();
    setting.name = name;
    setting.at.resize(sizes.size());
    for (const analysis::CaseSummary* row : cases) {
      const auto size = std::ranges::find(sizes, result.at(*row).reference, &analysis::CaseSummary::case_index);
      if (size != sizes.end()) setting.at[static_cast<std::size_t>(size - sizes.begin())] = row;
    }
  }
  return settings;
}

// "halving_doubling" for allreduce_algorithm=halving_doubling; the name itself where its value alone says too little.
std::string setting_label(const std::string& name) {
  if (name == "in_place=false") return "out of place";
  if (name == "in_place=true") return "in place";
  const std::string value = name.substr(std::min(name.find('=') + 1, name.size()));
  const bool is_word = !value.empty() && value.find_first_of("={+") == std::string::npos && value != "true" &&
                       value != "false" && value.find_first_not_of("0123456789. ") != std::string::npos;
  return is_word ? value : name;
}

// Labels that differ. What is too long for a heading is numbered, and a remark says what it is.
void label_columns(std::vector<SettingColumn>& settings, std::vector<std::string>& remarks) {
  constexpr std::size_t longest = 20;
  std::set<std::string> taken{settings.front().label};
  std::vector<std::string> legend;
  for (std::size_t i = 1; i < settings.size(); ++i) {
    SettingColumn& setting = settings[i];
    setting.label = setting_label(setting.name);
    if (taken.contains(setting.label)) setting.label = setting.name;
    if (columns_of(setting.label) > longest) {
      setting.label = fmt::format("setting {}", i);
      legend.push_back(fmt::format("{}: {}", setting.label, setting.name));
    }
    taken.insert(setting.label);
  }
  if (!legend.empty()) remarks.push_back(join(legend, "; ") + ".");
}

std::optional<double> operation_time(const analysis::CaseSummary& row) {
  return row.rates ? std::optional(row.rates->operation_seconds) : std::nullopt;
}

class GridTable {
 public:
  GridTable(const store::Result& result, const analysis::Summary& summary)
      : result_(result), summary_(summary), sizes_(analysis::by_size(result, summary)) {
    settings_ = setting_columns(result, summary, sizes_);
    out_.table.rows.resize(sizes_.size());
    label_columns(settings_, remarks_);
  }

  CaseTable build() {
    const bool on_bus = measured_by(result_) == Measured::collective;
    add_size(on_bus);
    add_numbers(operation_time, on_bus ? [](Values) { return Scale{"us", microsecond}; } : scale_of_seconds);
    const bool computes = !on_bus && std::ranges::any_of(summary_.cases, [](const analysis::CaseSummary& row) {
      return row.flops_per_rank > 0;
    });
    const std::string rate = add_numbers(
        operation_rate, computes ? scale_of_flops : [](Values) {
          return Scale{"GB/s", 1e9};
        });
    if (!on_bus) add_shares();
    add_limit();
    add_errors();
    for (std::size_t i = 1; i < settings_.size(); ++i) add_changes(settings_[i]);
    if (on_bus) add_averages();
    out_.table.columns.back().legend = fmt::format(
        "Columns are settings: the time of one operation, its {} ({}), and the change against the baseline at "
        "the same size. {}",
        on_bus ? "busbw" : "rate", rate, join(remarks_, " "));
    return std::move(out_);
  }

 private:
  using Value = std::optional<double> (*)(const analysis::CaseSummary&);
  using Values = std::span<const double>;

  void add(Table::Column column, const std::function<Cell(std::size_t)>& cell_of) {
    out_.table.columns.push_back(std::move(column));
    for (std::size_t i = 0; i < sizes_.size(); ++i) out_.table.rows[i].push_back(cell_of(i));
  }

  void add_size(bool in_bytes) {
    if (in_bytes) {
      add({.heading = "size B", .id = Table::Column::Id::size},
          [&](std::size_t i) { return size_cell(result_, *sizes_[i]); });
    } else {
      const auto sized = std::ranges::find(result_.cases, store::CaseRole::point, &store::ResultCase::role);
      add({.heading = sized->variable, .words = true, .id = Table::Column::Id::size},
          [&](std::size_t i) { return std::string(result_.setting(result_.at(*sizes_[i]), sized->variable)); });
    }
    const bool has_uses = std::ranges::any_of(result_.points, [](const auto& row) { return !row.uses.empty(); });
    if (!has_uses) return;
    add({.heading = uses_heading, .words = true}, [&](std::size_t i) { return uses_cell(result_, *sizes_[i]); });
  }

  // Returns the unit.
  std::string add_numbers(const Value& value, Scale (*scale_of)(Values)) {
    std::vector<double> values;
    for (const SettingColumn& setting : settings_) {
      for (const analysis::CaseSummary* row : setting.at) {
        if (const auto known = row == nullptr ? std::nullopt : value(*row)) values.push_back(*known);
      }
    }
    const Scale scale = scale_of(values);
    for (const SettingColumn& setting : settings_) {
      add({.heading = fmt::format("{} {}", setting.label, scale.unit)}, [&](std::size_t i) {
        const auto known = setting.at[i] == nullptr ? std::nullopt : value(*setting.at[i]);
        if (!known) return std::string();
        return scale.unit == "GB/s" ? gigabytes(known) : scale.print(*known);
      });
    }
    return scale.unit;
  }

  // MFU; nothing where the peak is not known.
  void add_shares() {
    const auto is_known = [](const analysis::CaseSummary* row) { return row != nullptr && row->mfu.value_or(0) > 0; };
    for (const SettingColumn& setting : settings_) {
      if (std::ranges::none_of(setting.at, is_known)) continue;
      add({.heading = setting.label + " of peak"},
          [&](std::size_t i) { return is_known(setting.at[i]) ? Cell(percent(*setting.at[i]->mfu)) : Cell(); });
    }
  }

  void add_limit() {
    const auto limit = [&](std::size_t i) {
      return sizes_[i]->rates ? sizes_[i]->rates->limit_bytes_per_s : std::nullopt;
    };
    bool known = false;
    for (std::size_t i = 0; i < sizes_.size(); ++i) known = known || limit(i);
    if (known) add({.heading = "limit GB/s"}, [&](std::size_t i) { return gigabytes(limit(i)); });
  }

  // The blocks of all settings that failed, of which one with a wrong result is one.
  void add_errors() {
    add({.heading = "errors"}, [&](std::size_t i) {
      int failed = 0;
      for (const SettingColumn& setting : settings_) {
        if (setting.at[i] != nullptr) failed += analysis::failed_blocks(result_, setting.at[i]->case_index);
      }
      return Cell(std::to_string(failed));
    });
  }

  // "-12.3 % [-14.0 %, -10.5 %] faster" in one cell, which no writer breaks, with its parts below each other.
  void add_changes(const SettingColumn& setting) {
    struct Parts {
      std::string change, interval, verdict;
    };
    std::vector<Parts> parts;
    std::size_t change = 0, interval = 0, verdict = 0;
    for (const analysis::CaseSummary* row : setting.at) {
      Parts& of = parts.emplace_back();
      if (row == nullptr) continue;
      of = {change_of(row->effect), interval_of(row->effect), analysis::name_of(row->judgement)};
      for (const std::string& note : case_notes(*row, summary_)) {
        out_.notes.push_back(fmt::format("{}: {}", row->name, note));
        of.verdict += fmt::format(" [{}]", out_.notes.size());
      }
      change = std::max(change, columns_of(of.change));
      interval = std::max(interval, columns_of(of.interval));
      verdict = std::max(verdict, columns_of(of.verdict));
    }
    const auto fill = [](const std::string& text, std::size_t width) {
      return std::string(width - columns_of(text), ' ');
    };
    add({.heading = setting.label + " change"}, [&](std::size_t i) {
      if (setting.at[i] == nullptr) return Cell();
      const Parts& of = parts[i];
      std::string text = fill(of.change, change) + of.change;
      if (interval > 0) text += " " + fill(of.interval, interval) + of.interval;
      return Cell(text + " " + of.verdict + fill(of.verdict, verdict), tone_of(setting.at[i]->judgement));
    });
  }

  // As the last line of nccl-tests has it.
  void add_averages() {
    std::vector<std::string> averages;
    for (const SettingColumn& setting : settings_) {
      double sum = 0;
      std::size_t measured = 0;
      for (const analysis::CaseSummary* row : setting.at) {
        if (row == nullptr || !row->rates || !row->rates->bus_bytes_per_s) continue;
        sum += *row->rates->bus_bytes_per_s;
        ++measured;
      }
      if (measured == sizes_.size())
        averages.push_back(fmt::format("{} {} GB/s", setting.label, gigabytes(sum / static_cast<double>(measured))));
    }
    if (!averages.empty()) remarks_.push_back(fmt::format("Average bus bandwidth: {}.", join(averages, ", ")));
  }

  const store::Result& result_;
  const analysis::Summary& summary_;
  std::vector<const analysis::CaseSummary*> sizes_;
  std::vector<SettingColumn> settings_;
  std::vector<std::string> remarks_;
  CaseTable out_;
};

}  // namespace

bool is_listed_by_size(const store::Result& result) {
  return measured_by(result) == Measured::collective && analysis::sweeps_sizes_alone(result);
}

CaseTable size_table(const store::Result& result, const analysis::Summary& summary) {
  CaseTable out;
  const std::vector<const analysis::CaseSummary*> rows = analysis::by_size(result, summary);
  for (const auto& [column, text_of] : columns()) out.table.columns.push_back(column);
  for (const analysis::CaseSummary* row : rows) {
    std::vector<Cell>& cells = out.table.rows.emplace_back();
    for (const auto& [column, text_of] : columns()) cells.emplace_back(text_of(result, *row));
  }
  out.table.remove_empty_columns();
  const auto legend = [&](std::string_view heading, std::string text) {
    const auto at = std::ranges::find(out.table.columns, heading, &Table::Column::heading);
    if (at != out.table.columns.end()) at->legend = std::move(text);
  };
  if (const auto average = analysis::average_bus_bandwidth(result, summary))
    legend("busbw GB/s", fmt::format("Average bus bandwidth: {} GB/s.", gigabytes(average)));
  for (const analysis::CaseSummary* row : rows) {
    if (!row->reason.empty()) out.notes.push_back(fmt::format("{}: {}", row->name, row->reason));
  }
  return out;
}

std::optional<double> operation_rate(const analysis::CaseSummary& row) {
  if (!row.rates) return std::nullopt;
  if (row.rates->bus_bytes_per_s) return row.rates->bus_bytes_per_s;
  return row.flops_per_rank > 0 ? row.flops_per_rank : row.rates->algorithm_bytes_per_s;
}

CaseTable grid_table(const store::Result& result, const analysis::Summary& summary) {
  return GridTable(result, summary).build();
}

}  // namespace harness::report
