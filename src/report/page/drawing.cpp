#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/page/page.h"

namespace harness::page {
namespace {

// Omits trailing zeros: pages contain tens of thousands of these numbers.
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
  if (!std::isfinite(low) || !std::isfinite(high)) return axis;  // an empty axis: nothing can be drawn
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
  if (!values.empty()) {
    axis.low = values.front();
    axis.high = values.back();
  }
  return axis;
}

Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label) {
  std::vector<double> positive;
  std::ranges::copy_if(values, std::back_inserter(positive),
                       [](double value) { return value > 0 && std::isfinite(value); });
  if (positive.empty()) return logarithmic_axis({}, std::move(label));
  constexpr int max_ticks = 10;
  const auto [low, high] = std::ranges::minmax(positive);
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
  const int stride = (last - first) / max_ticks + 1;
  std::vector<double> ticks;
  for (int power = first; power < last + stride; power += stride) ticks.push_back(std::pow(10.0, power));
  return logarithmic_axis(ticks, std::move(label));
}

void RowChart::draw(report::Figure& figure, const std::string& description) const {
  constexpr double tall = 1000;  // more than any row; the row clips it
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
    ends.text_within("tick", axis.at(tick), 18, axis.label(tick));
  }
  ends.text("axis", 0.5, 36, Svg::Anchor::middle, axis_title);
  out += fmt::format(R"(<div class="row ends"><div class="label"></div>{}<div class="value"></div></div></div>)",
                     ends.figure(figure.id + "-drawing", 42, figure.title, description));
  figure.drawing = std::move(out);
}

void LineChart::draw(report::Figure& figure, const std::string& description) const {
  constexpr double height = 236, head = 34, foot = 34;
  const auto y = [&](double value) { return height - (height - head) * up.at(value); };
  Svg svg;
  svg.text("panel", 0, 10, Svg::Anchor::start, title);
  for (const double tick : up.ticks) {
    svg.line("grid", 0, y(tick), 1, y(tick));
    svg.text("tick", 0, y(tick) - 4, Svg::Anchor::start, up.label(tick));
  }
  for (const double tick : x.ticks) {
    svg.line("grid", x.at(tick), head, x.at(tick), height);
    svg.text_within("tick", x.at(tick), height + 16, x.label(tick));
  }
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.points.size(); ++i) {
      const auto& [at, value] = line.points[i];
      if (!value) continue;
      if (i > 0 && line.points[i - 1].second)
        svg.line(line.kind.c_str(), x.at(line.points[i - 1].first), y(*line.points[i - 1].second), x.at(at), y(*value));
      if (!line.mark.empty()) svg.circle(line.mark.c_str(), x.at(at), y(*value), 4);
      if (i < line.notes.size()) svg.text_within("note", x.at(at), y(*value) - 10, line.notes[i]);
    }
  }
  for (const auto& [value, words] : notes) svg.text("note", 1, y(value) - 4, Svg::Anchor::end, words);
  svg.text("axis", 0.5, height + foot + 4, Svg::Anchor::middle, x_title);
  figure.drawing = svg.figure(figure.id + "-drawing", height + foot + 10, figure.title, description);
}

}  // namespace harness::page
