#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/median.h"
#include "base/units.h"
#include "report/page/axis.h"
#include "report/page/course_axis.h"
#include "report/page/svg.h"
#include "report/scale.h"

namespace harness::page {
namespace {

using analysis::CourseBlock;
using analysis::LevelCourse;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double top = 30, bottom = 230;               // of the panel with the blocks
constexpr double strip_top = 280, strip_bottom = 320;  // of the one with what others did

// What of a node other processes or guests took during a block, and who; NaN: not known.
struct Others {
  double foreign_share = nan, steal_share = nan;  // of the cores, of the CPU time
  double foreign_cores = nan;
};

std::vector<Others> others_during(const store::Result& result, const LevelCourse& course) {
  std::map<std::string, std::int32_t> cores;
  for (const store::ResultRank& rank : result.rank_table) cores[rank.host] = std::max(cores[rank.host], rank.cores);
  std::vector<Others> others(course.blocks.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (course.blocks[i].index >= result.conditions.size()) continue;
    const machine::Conditions& row = result.conditions[course.blocks[i].index];
    others[i].steal_share = row.steal_share;
    others[i].foreign_cores = row.foreign_cores;
    const auto of_host = cores.find(row.busiest_host);
    if (of_host != cores.end() && of_host->second > 0) others[i].foreign_share = row.foreign_cores / of_host->second;
  }
  return others;
}

// Log seconds over the usual level, upwards.
class CoursePanel {
 public:
  explicit CoursePanel(const LevelCourse& course) {
    std::vector<double> levels;
    for (const CourseBlock& block : course.blocks) levels.push_back(std::log(block.level_seconds));
    usual_ = median(levels);
    double low = -0.01, high = 0.01;
    const auto reach = [&](double log_seconds) {
      low = std::min(low, log_seconds - usual_);
      high = std::max(high, log_seconds - usual_);
    };
    for (const double level : levels) reach(level);
    for (const CourseBlock& block : course.blocks) {
      if (!block.set_aside) reach(block.machine);
    }
    axis_ = round_axis(std::expm1(low), std::expm1(high), 5, {});
    const int decimals = std::max(0, tick_decimals(tick_distance(axis_.high - axis_.low, 5)) - 2);
    axis_.label = [decimals](double share) { return signed_percent(share, decimals); };
    low_ = std::log1p(std::max(axis_.low, -0.99));
    high_ = std::log1p(axis_.high);
  }

  // What lies outside is drawn at the edge.
  double y(double log_seconds) const {
    return bottom - (bottom - top) * (std::clamp(log_seconds - usual_, low_, high_) - low_) / (high_ - low_);
  }
  double y_of_share(double share) const { return y(usual_ + std::log1p(std::max(share, -0.99))); }
  const Axis& axis() const { return axis_; }
  double usual_seconds() const { return std::exp(usual_); }

 private:
  double usual_ = 0, low_ = 0, high_ = 1;
  Axis axis_;
};

void draw_frame(Svg& svg, const CourseAxis& x, const CoursePanel& panel, double lowest) {
  for (const double share : panel.axis().ticks) {
    const double y = panel.y_of_share(share);
    svg.line(share == 0 ? "reference" : "grid", 0, y, 1, y);
    svg.text("tick", 0, y - 4, Svg::Anchor::start, panel.axis().label(share));
  }
  for (const CourseAxis::Tick& tick : x.ticks()) {
    svg.line("grid", tick.x, bottom, tick.x, bottom + 5);
    svg.text_within("tick", tick.x, bottom + 20, tick.label);
  }
  for (const double border : x.borders()) svg.line("reference", border, top - 10, border, lowest);
}

void draw_level(Svg& svg, const CourseAxis& x, const CoursePanel& panel, const LevelCourse& course) {
  for (std::size_t i = 1; i < course.blocks.size(); ++i) {
    const CourseBlock &from = course.blocks[i - 1], &to = course.blocks[i];
    if (from.session != to.session) continue;
    svg.line("level", x.at(from.session, from.time_unix_s), panel.y(std::log(from.level_seconds)),
             x.at(to.session, to.time_unix_s), panel.y(std::log(to.level_seconds)));
  }
}

void draw_blocks(Svg& svg, const CourseAxis& x, const CoursePanel& panel, const LevelCourse& course,
                 const analysis::Summary& summary) {
  for (const CourseBlock& block : course.blocks) {
    const std::string kind =
        fmt::format("{} {}", block.set_aside ? "aside" : "dot", verdict_class(summary.case_at(block.case_index)));
    svg.circle(kind.c_str(), x.at(block.session, block.time_unix_s), panel.y(block.machine), 3);
  }
}

void draw_jumps(Svg& svg, const CourseAxis& x, const LevelCourse& course, double lowest) {
  for (const analysis::LevelJump& jump : course.jumps) {
    const CourseBlock& block = course.blocks[jump.first];
    const double at = x.at(block.session, block.time_unix_s);
    svg.line("jump", at, top - 10, at, lowest);
    svg.text_within("note", at, top - 14, analysis::change_in_words(jump.log_change));
  }
}

// A block's part of the strip reaches to the next block of its session.
void draw_others(Svg& svg, const CourseAxis& x, const LevelCourse& course, const std::vector<Others>& others) {
  svg.text("panel", 0, strip_top - 8, Svg::Anchor::start, "cores taken by others");
  svg.rectangle("empty", 0, 1, strip_top, strip_bottom);
  for (std::size_t i = 0; i + 1 < course.blocks.size(); ++i) {
    const CourseBlock &from = course.blocks[i], &to = course.blocks[i + 1];
    if (from.session != to.session) continue;
    const double x0 = x.at(from.session, from.time_unix_s), x1 = x.at(to.session, to.time_unix_s);
    double y = strip_bottom;
    const auto pile = [&](const char* kind, double share) {
      if (!(share > 0)) return;
      const double height = std::min(share * (strip_bottom - strip_top), y - strip_top);
      svg.rectangle(kind, x0, x1, y - height, y);
      y -= height;
    };
    pile("foreign", others[i].foreign_share);
    pile("stolen", others[i].steal_share);
  }
}

bool any_known(const std::vector<Others>& others) {
  return std::ranges::any_of(
      others, [](const Others& row) { return !std::isnan(row.foreign_share) || !std::isnan(row.steal_share); });
}

std::string or_empty(double value, const char* format) {
  return std::isnan(value) ? "" : fmt::format(fmt::runtime(format), value);
}

// One row per round and session: every block would be thousands.
report::Table by_round(const LevelCourse& course, const std::vector<Others>& others, const CoursePanel& panel) {
  report::Table table;
  table.columns = {{"round"},     {"began, UTC"}, {"baseline's step ms"}, {"against the median"},
                   {"set aside"}, {"blocks"},     {"others' cores"},      {"stolen"}};
  for (std::size_t first = 0; first < course.blocks.size();) {
    const CourseBlock& begin = course.blocks[first];
    std::vector<double> levels;
    int set_aside = 0;
    double foreign = nan, stolen = nan;
    std::size_t end = first;
    for (; end < course.blocks.size(); ++end) {
      const CourseBlock& block = course.blocks[end];
      if (block.round != begin.round || block.session != begin.session) break;
      levels.push_back(block.level_seconds);
      set_aside += block.set_aside ? 1 : 0;
      foreign = std::fmax(foreign, others[end].foreign_cores);
      stolen = std::fmax(stolen, others[end].steal_share);
    }
    const double level = median(levels);
    table.rows.push_back({std::to_string(begin.round + 1), clock_text(begin.time_unix_s),
                          fmt::format("{:.4g}", 1e3 * level), signed_percent(level / panel.usual_seconds() - 1),
                          std::to_string(set_aside), std::to_string(end - first), or_empty(foreign, "{:.2f}"),
                          std::isnan(stolen) ? "" : percent(stolen)});
    first = end;
  }
  return table;
}

std::string caption_of(const LevelCourse& course, bool with_others) {
  std::string caption =
      "A dot is a block's median step time without what its case differs in from the baseline, over the usual one (log "
      "scale); the line is the machine's level, judged by the other blocks. Above 0: the machine was slower.";
  if (!course.jumps.empty()) caption += " Vertical lines: it became faster or slower and stayed so.";
  if (with_others)
    caption += " Below, from empty to full: the share of the busiest node's cores that other processes kept busy.";
  return caption + " Times are UTC.";
}

}  // namespace

std::optional<report::Figure> course_chart(const store::Result& result, const analysis::Summary& summary,
                                           const LevelCourse& course) {
  if (course.blocks.size() < 2) return std::nullopt;
  const std::vector<Others> others = others_during(result, course);
  const bool with_others = any_known(others);
  const double lowest = with_others ? strip_bottom : bottom;
  const CourseAxis x(course.blocks);
  const CoursePanel panel(course);
  Svg svg;
  draw_frame(svg, x, panel, lowest);
  if (with_others) draw_others(svg, x, course, others);
  draw_blocks(svg, x, panel, course, summary);
  draw_level(svg, x, panel, course);
  draw_jumps(svg, x, course, lowest);

  report::Figure figure;
  figure.id = "machine";
  figure.title = "The machine's speed over the sweep.";
  figure.caption = caption_of(course, with_others);
  figure.legend = {{"v-baseline", "baseline"},
                   {"v-faster", "faster cases"},
                   {"v-slower", "slower cases"},
                   {"v-same", "other cases"},
                   {"aside v-same", "too far off to count"}};
  figure.numbers = by_round(course, others, panel);
  figure.drawing = svg.figure("machine-drawing", lowest + (with_others ? 8 : 28), figure.title,
                              "The level by round is in the table below.");
  return figure;
}

}  // namespace harness::page
