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

// The files that have nothing of this name, as a list of labels; "" if all have something.
std::string without(std::span<const analysis::ComparedFile> files, const analysis::Difference& difference) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    if (difference.values[i] == analysis::absent) labels.push_back(files[i].label);
  }
  return join(labels, ", ");
}

// A line for each difference; one line for all names of a group that the same files lack, where these are many, as they
// are in files of other workloads.
List difference_lines(std::span<const analysis::ComparedFile> files,
                      const std::vector<analysis::Difference>& differences) {
  constexpr std::size_t many = 4, named = 3;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> lacking;  // by group and files
  for (const analysis::Difference& difference : differences) {
    if (const std::string labels = without(files, difference); !labels.empty())
      lacking[{difference.group, labels}].push_back(difference.name);
  }
  List lines;
  for (const analysis::Difference& difference : differences) {
    const std::string labels = without(files, difference);
    const auto all = lacking.find({difference.group, labels});
    if (all == lacking.end() || all->second.size() < many) {
      lines.items.push_back(difference_line(files, difference));
    } else if (all->second.front() == difference.name) {
      lines.items.push_back(fmt::format("{}: {} {} in {}: {} (--format json has all)", difference.group,
                                        all->second.size(), analysis::absent, labels, join_first(all->second, named)));
    }
  }
  return lines;
}

}  // namespace

Section differences_section(std::span<const analysis::ComparedFile> files,
                            const std::vector<analysis::Difference>& differences, std::size_t most_lines) {
  Section section{"differences", "", {}};
  if (differences.empty()) {
    section.add(
        Paragraph{"No hidden differences between these files: same program, machine, settings and environment."});
    return section;
  }
  section.add(Paragraph{"What differs besides the times:"});
  List lines = difference_lines(files, differences);
  if (const std::size_t all = lines.items.size(); all > most_lines) {
    lines.items.resize(most_lines);
    lines.items.push_back(fmt::format("{} more: -v shows them", all - most_lines));
  }
  section.add(std::move(lines));
  return section;
}

}  // namespace harness::report
