#include "report/case_label.h"

#include "base/error.h"
#include "config/registry.h"

namespace harness::report {

std::string short_layout(std::string_view name) {
  constexpr std::string_view variable = "layout";
  if (!name.starts_with(variable) || name.substr(variable.size(), 1) != "=") return "";
  config::Settings settings;
  try {
    config::find_variable(variable)->parse(settings, name.substr(variable.size() + 1));
  } catch (const Error&) {  // of a file that another version wrote
    return "";
  }
  return program::label_of(settings.layout);
}

bool is_of_a_size(std::string_view case_name) {
  const std::size_t equals = case_name.find('=');
  return equals != std::string_view::npos && config::purpose_of(case_name.substr(0, equals)) == config::Purpose::size;
}

std::string label_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point != nullptr && !point->uses.empty() && is_of_a_size(row.name) ? point->uses : row.name;
}

}  // namespace harness::report
