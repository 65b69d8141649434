#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "report/document.h"
#include "report/page/page.h"

namespace harness::page {
namespace {

// Without trailing zeros: pages hold tens of thousands of these.
std::string number(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}
std::string pixels(double value) {
  return number(value, 1);
}
// A share as "12.34%".
std::string in_percent(double share) {
  return number(100 * share, 2) + "%";
}

Axis with_ticks(double low, double high, double distance, std::function<std::string(double)> label) {
  Axis axis;
  axis.label = std::move(label);
  if (!std::isfinite(low) || !std::isfinite(high)) return axis;  // nothing can be drawn over it
  axis.low = low;
  axis.high = high > low ? high : low + distance;
  const double first = std::ceil(axis.low / distance - 1e-9), last = std::floor(axis.high / distance + 1e-9);
  constexpr int max_ticks = 100;
  for (int i = 0; i <= max_ticks && first + i <= last; ++i) {
    const double k = first + i;
    axis.ticks.push_back(k == 0 ? 0 : k * distance);  // no negative zero
  }
  return axis;
}

void draw_line(Svg& svg, const LinePanel::Line& line, const Axis& x, const std::function<double(double)>& y) {
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const auto& [x0, from] = line.points[i - 1];
    const auto& [x1, to] = line.points[i];
    if (from && to) svg.line(line.kind.c_str(), x.at(x0), y(*from), x.at(x1), y(*to));
  }
  for (std::size_t i = 0; i < line.points.size() && !line.mark.empty(); ++i) {
    const auto& [at, value] = line.points[i];
    if (value) svg.circle(line.mark.c_str(), x.at(at), y(*value), 4);
    if (value && i < line.notes.size()) svg.text_within("note", x.at(at), y(*value) - 10, line.notes[i]);
  }
}

}  // namespace

using report::escaped_markup;

void Svg::rectangle(const char* kind, double x0, double x1, double y0, double y1) {
  body_ += fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>)", kind, in_percent(x0), pixels(y0),
                       in_percent(x1 > x0 ? x1 - x0 : 0), pixels(y1 - y0));
}

void Svg::line(const char* kind, double x0, double y0, double x1, double y1) {
  body_ += fmt::format(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>)", kind, in_percent(x0), pixels(y0),
                       in_percent(x1), pixels(y1));
}

void Svg::circle(const char* kind, double x, double y, double radius) {
  body_ +=
      fmt::format(R"(<circle class="{}" cx="{}" cy="{}" r="{}"/>)", kind, in_percent(x), pixels(y), pixels(radius));
}

void Svg::text(const char* kind, double x, double y, Anchor anchor, std::string_view words) {
  const char* anchors[] = {"start", "middle", "end"};
  body_ += fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>)", kind, in_percent(x), pixels(y),
                       anchors[static_cast<int>(anchor)], escaped_markup(words));
}

void Svg::text_within(const char* kind, double x, double y, std::string_view words) {
  constexpr double near = 0.005;
  Anchor anchor = Anchor::middle;
  if (x < near) anchor = Anchor::start;
  if (x > 1 - near) anchor = Anchor::end;
  text(kind, x, y, anchor, words);
}

void Svg::stretched(double x0, double x1, double y, double height, double units_wide, double units_high,
                    const std::string& paths) {
  body_ += fmt::format(
      R"(<svg x="{}" y="{}" width="{}" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">{}</svg>)",
      in_percent(x0), pixels(y), in_percent(x1 - x0), pixels(height), pixels(units_wide), pixels(units_high), paths);
}

std::string Svg::figure(const std::string& id, double height, std::string_view title,
                        std::string_view description) const {
  return fmt::format(
      R"(<svg class="drawing" role="img" aria-labelledby="{0}-title {0}-about" width="100%" height="{1}">)"
      R"(<title id="{0}-title">{2}</title><desc id="{0}-about">{3}</desc>{4}</svg>)",
      escaped_markup(id), pixels(height), escaped_markup(title), escaped_markup(description), body_);
}

std::string cell_paths(std::size_t rows, std::size_t cells, std::span<const std::string> classes,
                       const std::function<std::optional<std::size_t>(std::size_t row, std::size_t cell)>& colour_of) {
  std::vector<std::string> paths(classes.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t cell = 0; cell < cells;) {
      const std::optional<std::size_t> colour = colour_of(row, cell);
      std::size_t end = cell + 1;
      while (end < cells && colour_of(row, end) == colour) ++end;
      if (colour) paths[*colour] += fmt::format("M{} {}h{}v1h-{}z", cell, row, end - cell, end - cell);
      cell = end;
    }
  }
  std::string all;
  for (std::size_t k = 0; k < paths.size(); ++k) {
    if (!paths[k].empty()) all += fmt::format(R"(<path class="{}" d="{}"/>)", classes[k], paths[k]);
  }
  return all;
}

double Axis::at(double value) const {
  const auto place = [&](double x) { return logarithmic ? std::log(x) : x; };
  const double range = place(high) - place(low);
  const double inner = range > 0 ? (place(std::clamp(value, low, high)) - place(low)) / range : 0.5;
  return margin + (1 - 2 * margin) * inner;
}

double tick_distance(double range, int count) {
  if (!(range > 0) || !std::isfinite(range) || count < 1) return 1;
  const double raw = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int tick_decimals(double distance) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(distance) - 1e-9)), 0, 6);
}

Axis linear_axis(double low, double high, int count, std::function<std::string(double)> label) {
  return with_ticks(low, high, tick_distance(high - low, count), std::move(label));
}

Axis round_axis(double low, double high, int count, std::function<std::string(double)> label) {
  const double distance = tick_distance(high - low, count);
  return with_ticks(std::floor(low / distance + 1e-9) * distance, std::ceil(high / distance - 1e-9) * distance,
                    distance, std::move(label));
}

Axis logarithmic_axis(const std::vector<double>& values, std::function<std::string(double)> label) {
  Axis axis;
  axis.logarithmic = true;
  axis.label = std::move(label);
  axis.margin = 0.06;
  axis.ticks = values;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (low != values.end()) {
    axis.low = *low;
    axis.high = *high;
  }
  return axis;
}

Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label) {
  Axis axis = logarithmic_axis({}, std::move(label));
  axis.margin = 0.02;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(high > 0)) return axis;  // nothing can be drawn over it
  constexpr int max_ticks = 10, few_decades = 3;
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const int stride = (last - first) / max_ticks + 1;
  const std::vector<double> parts = last - first < few_decades ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
  for (int power = first; power <= last; power += stride) {
    for (const double part : parts) axis.ticks.push_back(part * std::pow(10.0, power));
  }
  const double near_one = 1 + 1e-9;
  while (axis.ticks.size() > 2 && axis.ticks[1] <= low * near_one) axis.ticks.erase(axis.ticks.begin());
  while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= high / near_one) axis.ticks.pop_back();
  axis.low = std::min(low, axis.ticks.front());
  axis.high = std::max(high, axis.ticks.back());
  return axis;
}

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

double draw_panels(Svg& svg, const Axis& x, const std::vector<LinePanel>& panels, std::string_view x_title) {
  constexpr double head = 34, foot = 34;
  double top = 0;
  for (const LinePanel& panel : panels) {
    const double bottom = top + panel.height;
    const auto y = [&](double value) { return bottom - (panel.height - head) * panel.up.at(value); };
    svg.text("panel", 0, top + 10, Svg::Anchor::start, panel.title);
    for (const double tick : panel.up.ticks) {
      svg.line("grid", 0, y(tick), 1, y(tick));
      svg.text("tick", 0, y(tick) - 4, Svg::Anchor::start, panel.up.label(tick));
    }
    for (const double tick : x.ticks) {
      svg.line("grid", x.at(tick), top + head, x.at(tick), bottom);
      svg.text_within("tick", x.at(tick), bottom + 16, x.label(tick));
    }
    for (const LinePanel::Line& line : panel.lines) draw_line(svg, line, x, y);
    for (const auto& [value, words] : panel.notes) svg.text("note", 1, y(value) - 4, Svg::Anchor::end, words);
    top = bottom + foot;
  }
  svg.text("axis", 0.5, top + 4, Svg::Anchor::middle, x_title);
  return top + 10;
}

}  // namespace harness::page
