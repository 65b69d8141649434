#include "report/page/svg.h"

#include <fmt/format.h>

#include "report/clean_text.h"

namespace harness::page {

using report::escaped_markup;

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

}  // namespace

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

}  // namespace harness::page
