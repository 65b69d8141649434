#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "report/sections.h"

namespace harness::report {
namespace {

// "onednn: 2.6.3 (monday.h5, tuesday.h5); 3.1 (friday.h5)": files with the same value together, in order.
std::string difference_line(std::span<const analysis::ComparedFile> files, const analysis::Difference& difference) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_value;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    auto& labels = by_value[difference.values[i]];
    if (labels.empty()) order.push_back(difference.values[i]);
    labels.push_back(files[i].label);
  }
  std::vector<std::string> parts;
  for (const std::string& value : order) {
    parts.push_back(fmt::format("{} ({})", value.empty() ? "\"\"" : value, join(by_value[value], ", ")));
  }
  return fmt::format("{}, {}: {}", difference.group, difference.name, join(parts, "; "));
}

}  // namespace

Section differences_section(std::span<const analysis::ComparedFile> files,
                            const std::vector<analysis::Difference>& differences) {
  Section section{"differences", "", {}};
  if (differences.empty()) {
    section.add(
        Paragraph{"No hidden differences between these files: same program, machine, settings and environment."});
    return section;
  }
  section.add(Paragraph{"What differs besides the times:"});
  List lines;
  for (const analysis::Difference& difference : differences) lines.items.push_back(difference_line(files, difference));
  section.add(std::move(lines));
  return section;
}

}  // namespace harness::report
