#include "report/page/row_chart.h"

#include <fmt/format.h>

#include "report/clean_text.h"

namespace harness::page {

using report::escaped_markup;

void RowChart::draw(report::Figure& figure, const std::string& description) const {
  constexpr double tall = 1000;  // more than any row; the drawing is cut off at its row
  Svg grid;
  for (const double tick : axis.ticks) grid.line("grid", axis.at(tick), -tall, axis.at(tick), tall);
  grid.append(behind);
  std::string out = fmt::format(R"(<div class="rows{}{}">)", kind.empty() ? "" : " ", kind);
  for (const Row& row : rows) {
    out += fmt::format(R"(<div class="row{}{}"><div class="label">{}</div><div class="plot"><svg aria-hidden="true">)"
                       R"(<svg y="50%" class="open">{}{}</svg></svg></div>)"
                       R"(<div class="value">{}{}</div></div>)",
                       row.kind.empty() ? "" : " ", row.kind, escaped_markup(row.label), grid.body(),
                       row.drawing.body(), escaped_markup(row.value),
                       row.note.empty() ? "" : " <small>" + escaped_markup(row.note) + "</small>");
    out += "\n";
  }
  Svg ends;
  for (const double tick : axis.ticks) {
    ends.line("grid", axis.at(tick), 0, axis.at(tick), 5);
    if (axis.label) ends.text_within("tick", axis.at(tick), 18, axis.label(tick));
  }
  if (!axis_title.empty()) ends.text("axis", 0.5, 36, Svg::Anchor::middle, axis_title);
  out += fmt::format(R"(<div class="row ends"><div class="label"></div>{}<div class="value"></div></div></div>)",
                     ends.figure(figure.id + "-drawing", axis_title.empty() ? 24 : 42, figure.title, description));
  figure.drawing = std::move(out);
}

}  // namespace harness::page
