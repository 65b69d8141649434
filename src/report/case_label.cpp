#include "report/case_label.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/comparable.h"

namespace harness::report {

std::string short_layout(std::string_view name) {
  if (!name.starts_with("layout={")) return "";
  std::string out;
  for (const auto& [part, word] : {std::pair<std::string_view, const char*>{"tensor_parallel: ", "TP"},
                                   std::pair<std::string_view, const char*>{"pipeline_parallel: ", "PP"}}) {
    const auto at = name.find(part);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = name.substr(at + part.size());
    const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
    if (number.empty() || number == "1") continue;
    out += fmt::format("{}{}{}", out.empty() ? "" : " ", word, number);
  }
  return out.empty() ? "TP1 PP1" : out;
}

bool is_of_a_size(std::string_view case_name) {
  const std::size_t equals = case_name.find('=');
  return equals != std::string_view::npos && analysis::is_a_size(case_name.substr(0, equals));
}

std::string label_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  return point != nullptr && !point->uses.empty() && is_of_a_size(row.name) ? point->uses : row.name;
}

}  // namespace harness::report
