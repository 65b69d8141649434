#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/findings.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// A self-contained HTML file, without network access or scripts; also well-formed XML, so that it can be validated.
std::string page(const report::Document& document);

/// The whole report. `result` must include its timeline.
report::Document make_report(const store::Result& result, const analysis::Findings& findings);

// The charts of a page. Optional ones are empty if there is nothing to draw.

/// Every compared change, the fastest first: its effect on the step time with its interval, over the band of effects
/// too small to matter. Empty if none was compared.
std::optional<report::Figure> tornado(const store::Result& result, const analysis::Summary& summary);

/// Tokens per second and efficiency per rank against the number of ranks. No pieces unless `ranks` was swept and two
/// sizes were measured.
report::Section scaling_section(const store::Result& result, const analysis::Findings& findings);

/// Bus bandwidth of collectives against message size, with the limit of the links: a line per collective, or a line per
/// setting if settings are compared at several sizes. Empty if no collective was measured on its own.
std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary);

/// From 100 % of the peak down to the measured MFU.
report::Figure waterfall_chart(const analysis::Waterfall& waterfall, const std::string& id,
                               const std::string& case_name);

/// One profiled step: lanes_chart() of up to eight ranks. Empty if it has no operation.
std::optional<report::Figure> timeline_chart(const analysis::DrawnStep& step, const std::string& id,
                                             const std::string& title, double length_s);

/// A grid of nodes and their ranks: how late each rank was (analysis::Stragglers::late_share).
report::Figure late_ranks_chart(const store::Result& result, const std::vector<double>& late_share);

/// The content of an <svg> that fills the available width: x and widths are shares of the width, 0 to 1; y and heights
/// are pixels. A drawing thus fits a phone while its text keeps its size. Colours come from CSS classes.
class Svg {
 public:
  enum class Anchor { start, middle, end };

  void rectangle(const char* kind, double x0, double x1, double y0, double y1);
  void line(const char* kind, double x0, double y0, double x1, double y1);
  void circle(const char* kind, double x, double y, double radius);
  void text(const char* kind, double x, double y, Anchor anchor, std::string_view words);
  /// Centred at x, or as near to it as the edges allow.
  void text_within(const char* kind, double x, double y, std::string_view words);
  /// Paths in their own units, stretched to x0 … x1 and `height` pixels from y.
  void stretched(double x0, double x1, double y, double height, double units_wide, double units_high,
                 const std::string& paths);
  void append(const Svg& other) { body_ += other.body_; }

  const std::string& body() const { return body_; }

  /// A complete drawing, with a title and a description for screen readers.
  std::string figure(const std::string& id, double height, std::string_view title, std::string_view description) const;

 private:
  std::string body_;
};

/// Paths that fill the cells of a grid, for Svg::stretched(): adjacent cells of one colour in a row form one rectangle.
/// `colour_of` returns an index into `classes` for a row and a cell; nullopt leaves the cell empty.
std::string cell_paths(std::size_t rows, std::size_t cells, std::span<const std::string> classes,
                       const std::function<std::optional<std::size_t>(std::size_t row, std::size_t cell)>& colour_of);

/// Maps values to positions along a drawing's width, 0 to 1, and marks some of them with ticks.
struct Axis {
  double low = 0, high = 1;
  double margin = 0.02;  // free share at either end
  bool logarithmic = false;
  std::vector<double> ticks;
  std::function<std::string(double)> label;

  double at(double value) const;  // values beyond the ends are clamped to the edge
  bool contains(double value) const { return value >= low && value <= high; }
};

/// From low to high with about `count` ticks at 1, 2 or 5 times a power of ten.
Axis linear_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Extends both ends to ticks.
Axis round_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Logarithmic, with ticks at the values themselves (numbers of ranks), the smallest first.
Axis logarithmic_axis(const std::vector<double>& values, std::function<std::string(double)> label);

/// Logarithmic over these positive values, with ticks at powers of ten; if more than ten, at every second or third.
Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label);

double tick_distance(double range, int count);
/// The number of decimals that distinguishes ticks at this distance.
int tick_decimals(double distance);

/// A label on the left, a drawing in the middle and a value on the right, row by row over one axis; on a narrow page
/// label and value are above the drawing. The y axis of a row's drawing is 0 at the middle of the row.
struct RowChart {
  struct Row {
    std::string label, value;
    Svg drawing;
    std::string kind;       // a CSS class for the row
    std::string note = "";  // next to the value, smaller
  };
  Axis axis;
  std::string axis_title;
  Svg behind;  // drawn in every row over its whole height, e.g. a rectangle from y -1000 to 1000
  std::vector<Row> rows;
  std::string kind;  // a CSS class for the chart: "thin"

  /// Sets the drawing of the figure. `description`: for screen readers, like the figure's title.
  void draw(report::Figure& figure, const std::string& description) const;
};

struct LineChart {
  struct Line {
    std::string kind;                                              // its CSS class
    std::vector<std::pair<double, std::optional<double>>> points;  // a missing value interrupts the line
    std::string mark = {};                                         // CSS class of a dot at each point; "": none
    std::vector<std::string> notes = {};                           // above each dot
  };
  std::string title, x_title;
  Axis x, up;
  std::vector<Line> lines;
  std::vector<std::pair<double, std::string>> notes = {};  // at the right edge: value and words

  void draw(report::Figure& figure, const std::string& description) const;
};

enum class OperationKind : std::uint8_t {
  matrix_product,
  attention,
  other_computation,
  optimizer,
  tensor,
  data,
  pipeline,
  closing,  // the all-reduce at the end of a step
  waiting,
  everyone,  // communication of all ranks, or of a group without a name
  copy,
};

/// An operation of a step on its rank's timeline.
struct DrawnOperation {
  std::int64_t rank = 0;
  std::string track;  // "compute", which is drawn first, or a stream
  OperationKind kind = OperationKind::other_computation;
  double start_s = 0, end_s = 0;
  double waited_s = NAN;  // for other ranks, at its beginning; NaN: unknown
};

/// Up to eight indices below `all` (ranks of a timeline, ticks of an axis), evenly spaced from the first to the last.
std::vector<std::size_t> evenly_chosen(std::size_t all);

/// One step: a lane for each track of each rank in `operations`, coloured by kind. A lane has 2000 cells, each in the
/// colour of the kind that took most of it, so that a step of a hundred thousand operations stays small. length_s: the
/// duration that the width represents, so that charts can be compared. The caption explains how to read a lane.
report::Figure lanes_chart(const std::vector<DrawnOperation>& operations, double step_s, double length_s,
                           const std::string& id, const std::string& title);

}  // namespace harness::page
