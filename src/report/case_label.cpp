#include "report/case_label.h"

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

bool is_of_a_size(std::string_view case_name) {
  const std::size_t equals = case_name.find('=');
  return equals != std::string_view::npos && config::purpose_of(case_name.substr(0, equals)) == config::Purpose::size;
}

std::string setting_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultCase& of = result.at(row);
  return config::case_name({of.variable, of.value, {}, ""});
}

std::string label_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point != nullptr && !point->uses.empty() && is_of_a_size(row.name) ? point->uses : row.name;
}

}  // namespace harness::report
