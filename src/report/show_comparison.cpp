#include "report/show_comparison.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "report/comparison_tables.h"

namespace harness {
namespace {

constexpr std::size_t width = 120;

// "onednn: 2.6.3 (monday.h5, tuesday.h5); 3.1 (friday.h5)": files with the same value together, in order.
std::string difference_line(const ComparisonReport& report, const Difference& difference) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_value;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    auto& labels = by_value[difference.values[i]];
    if (labels.empty()) order.push_back(difference.values[i]);
    labels.push_back(report.files[i].label);
  }
  std::vector<std::string> parts;
  for (const std::string& value : order) {
    parts.push_back(fmt::format("{} ({})", value.empty() ? "\"\"" : value, join(by_value[value], ", ")));
  }
  return fmt::format("{}, {}: {}", difference.group, difference.name, join(parts, "; "));
}

struct Section {
  std::string legend, headline;
  Table table, parts;
  std::vector<std::string> notes;
};

std::vector<Section> sections_of(const ComparisonReport& report) {
  std::vector<Section> sections;
  const auto legend = [](const auto& sides) {
    return fmt::format("A: {}. B: {}.", join(sides.first, ", "), join(sides.second, ", "));
  };
  for (const Comparison& one : report.comparisons) {
    sections.push_back(
        {legend(one), comparison_headline(one), comparison_table(one), parts_table(one), comparison_notes(one)});
  }
  for (const Reproduction& one : report.reproductions) {
    sections.push_back({legend(one), reproduction_headline(one), reproduction_table(one), {}, reproduction_notes(one)});
  }
  return sections;
}

std::string text_of(const ComparisonReport& report) {
  std::string out =
      report.differences.empty()
          ? "No hidden differences between these files: same program, machine, settings and environment.\n"
          : "What differs besides the times:\n";
  for (const Difference& one : report.differences) out += wrapped("- " + difference_line(report, one), width, 4);
  if (!report.incomparable.empty()) {
    out += report.anyway ? "\nThese files cannot be compared; what follows was asked for all the same:\n"
                         : "\nThese files cannot be compared:\n";
    for (const auto& reason : report.incomparable) out += wrapped("! " + reason, width, 2);
    if (!report.anyway) out += "--anyway compares them all the same.\n";
  }
  if (!report.unreliable.empty()) out += "\n";
  for (const auto& reason : report.unreliable) out += wrapped("! " + reason, width, 2);
  for (const Section& one : sections_of(report)) {
    out += "\n" + wrapped(one.legend, width, 2) + wrapped(one.headline, width, 2);
    if (!one.table.rows.empty()) out += "\n" + one.table.text();
    if (!one.parts.rows.empty())
      out += "\nOf one profiled step, mean over ranks, of the baseline and of cases that moved:\n" + one.parts.text();
    out += "\n";
    for (const auto& note : one.notes) out += wrapped(note, width, 2);
  }
  return out;
}

std::string markdown_of(const ComparisonReport& report) {
  const auto bullet = [](const std::string& line) { return "- " + markdown_line(line) + "\n"; };
  std::string out =
      report.differences.empty()
          ? "No hidden differences between these files: same program, machine, settings and environment.\n"
          : "What differs besides the times:\n\n";
  for (const Difference& one : report.differences) out += bullet(difference_line(report, one));
  if (!report.incomparable.empty()) {
    out += report.anyway ? "\n**These files cannot be compared; what follows was asked for all the same:**\n\n"
                         : "\n**These files cannot be compared** (`--anyway` does it all the same):\n\n";
    for (const auto& reason : report.incomparable) out += bullet(reason);
  }
  if (!report.unreliable.empty()) out += "\n";
  for (const auto& reason : report.unreliable) out += "- **Warning:** " + markdown_line(reason) + "\n";
  for (const Section& one : sections_of(report)) {
    out += fmt::format("\n{}\n\n**{}**\n", markdown_line(one.legend), markdown_line(one.headline));
    if (!one.table.rows.empty()) out += "\n" + one.table.markdown();
    if (!one.parts.rows.empty()) {
      out += "\nOf one profiled step, mean over ranks, of the baseline and of cases that moved:\n\n" +
             one.parts.markdown();
    }
    out += "\n";
    for (const auto& note : one.notes) out += bullet(note);
  }
  return out;
}

}  // namespace

std::string show(const ComparisonReport& report, Format format) {
  switch (format) {
    case Format::md:
      return markdown_of(report);
    case Format::json:
      return comparison_json(report);
    case Format::csv:
      fail("compare has no format csv; allowed: text, md, json");
    case Format::text:
      break;
  }
  return text_of(report);
}

}  // namespace harness
