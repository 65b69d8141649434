#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/scale.h"
#include "report/sections.h"

namespace harness::report {
namespace {

std::string name_of_kind(const analysis::KindCompared& row) {
  std::string name = row.kind;
  if (!row.group.empty()) name += fmt::format(" ({})", row.group);
  if (row.recomputed) name += ", recomputed";
  return name;
}

// What would round to nothing on either side is left out.
constexpr double least_shown = 0.0005;  // of the step

class ComparedTable {
 public:
  ComparedTable(const analysis::CaseCompared& compared, bool of_prediction)
      : compared_(compared),
        scale_(scale_of_seconds(std::array{std::max(compared.measured_s, compared.predicted_s)})) {
    const char* measured = of_prediction ? "with faults" : "measured";
    const char* predicted = of_prediction ? "without" : "predicted";
    table_.columns = {{"kind of operation", true}, {fmt::format("{} {}", measured, scale_.unit)},
                      {fmt::format("{} {}", predicted, scale_.unit)}, {"ratio"}, {"of the step"}, {"predicted"},
                      {"excess"}};
    if (of_prediction) table_.columns[5].heading = "without";
    for (const analysis::KindCompared& row : compared.kinds) add(row);
    for (const analysis::PartCompared& row : compared.parts) add(row);
    add_step();
  }
  Table take() { return std::move(table_); }

 private:
  std::string number(double seconds) const { return fmt::format("{:.2f}", seconds / scale_.factor + 0.0); }
  std::string excess(double seconds) const {
    const std::string text = fmt::format("{:+.2f}", seconds / scale_.factor);
    return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
  }
  static std::string ratio(double measured, double predicted) {
    return measured > 0 && predicted > 0 ? fmt::format("{:.2f}", measured / predicted) : "";
  }

  void add(const analysis::KindCompared& row) {
    const double most = std::max({row.measured_takes_s, row.predicted_takes_s, row.measured_owns_s});
    if (most < least_shown * std::max(compared_.measured_s, compared_.predicted_s)) return;
    table_.rows.push_back({name_of_kind(row), number(row.measured_takes_s), number(row.predicted_takes_s),
                           ratio(row.measured_takes_s, row.predicted_takes_s), number(row.measured_owns_s),
                           number(row.predicted_owns_s), excess(row.excess_s())});
  }
  void add(const analysis::PartCompared& row) {
    table_.rows.push_back({name_of(row.part), "", "", "", number(row.measured_s), number(row.predicted_s),
                           excess(row.excess_s())});
  }
  void add_step() {
    table_.rows.push_back({"step, profiled", number(compared_.measured_s), number(compared_.predicted_s),
                           ratio(compared_.measured_s, compared_.predicted_s), number(compared_.measured_s),
                           number(compared_.predicted_s), excess(compared_.measured_s - compared_.predicted_s)});
  }

  const analysis::CaseCompared& compared_;
  Scale scale_;
  Table table_;
};

}  // namespace

std::string diagnosis_words(const analysis::Explanation& /*explanation*/) {
  return "";
}

Section explanation_section(const store::Result& result, const analysis::Findings& findings) {
  Section section{"prediction", "Measured against predicted", {}};
  if (!findings.explanation) return section;
  const analysis::Explanation& explained = *findings.explanation;
  if (explained.of_prediction) section.title = "Predicted with its faults against predicted without";
  if (!explained.why_none.empty()) {
    section.add(Paragraph{fmt::format("There is no prediction to hold it against: {}.", explained.why_none)});
    return section;
  }
  section.add(Paragraph{fmt::format(
      "What each kind of operation takes, and what it costs the step, beside what is predicted for {} with the "
      "calibration {}; means over ranks. Communications count without the waiting for others, which has a line of its "
      "own. The last three columns add up to the step.",
      explained.hardware, explained.calibration)});
  for (const analysis::CaseCompared& compared : explained.cases) {
    section.add(Subheading{result.at(compared).name});
    section.add(Numbers{"", ComparedTable(compared, explained.of_prediction).take()});
  }
  return section;
}

}  // namespace harness::report
