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

/// One file that needs nothing else: no network, no script. Well-formed XML too, so that it can be checked strictly.
std::string page(const report::Document& document);

/// The whole report. `result` with its timeline.
report::Document make_report(const store::Result& result, const analysis::Findings& findings);

// The charts of a page. An optional one is absent where there is nothing to draw.

/// Every change that was compared, the fastest first: its effect on the step time with its interval, over the band of
/// effects too small to matter. Nothing if none was compared.
std::optional<report::Figure> tornado(const store::Result& result, const analysis::Summary& summary);

/// Tokens per second and efficiency per rank against the number of ranks. No pieces unless `ranks` was
/// swept and two sizes were measured.
report::Section scaling_section(const store::Result& result, const analysis::Findings& findings);

/// Bus bandwidth of collectives against the size of the message, with what the links allow: a line per collective,
/// where settings are compared at several sizes a line per setting. Nothing where no collective was measured on its
/// own.
std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary);

/// From 100 % of the peak down to the measured MFU.
report::Figure waterfall_chart(const analysis::Waterfall& waterfall, const std::string& id,
                               const std::string& case_name);

/// One profiled step: lanes_chart() of up to eight ranks. Nothing if it has no operation.
std::optional<report::Figure> timeline_chart(const analysis::DrawnStep& step, const std::string& id,
                                             const std::string& title, double length_s);

/// Nodes by the ranks on them: how late each was (analysis::Stragglers::late_share).
report::Figure late_ranks_chart(const store::Result& result, const std::vector<double>& late_share);

/// The inside of an <svg> that is as wide as its place: x and widths are shares of the width, 0 to 1, y and heights are
/// pixels, so that a drawing fits a phone while its letters keep their size. Colours come from the classes.
class Svg {
 public:
  enum class Anchor { start, middle, end };

  void rectangle(const char* kind, double x0, double x1, double y0, double y1);
  void line(const char* kind, double x0, double y0, double x1, double y1);
  void circle(const char* kind, double x, double y, double radius);
  void text(const char* kind, double x, double y, Anchor anchor, std::string_view words);
  /// As near to x as the edges allow.
  void text_within(const char* kind, double x, double y, std::string_view words);
  /// Paths in units of their own, stretched to x0 … x1 and `height` pixels from y.
  void stretched(double x0, double x1, double y, double height, double units_wide, double units_high,
                 const std::string& paths);
  void append(const Svg& other) { body_ += other.body_; }

  const std::string& body() const { return body_; }

  /// A drawing of its own, with a name and a description for those who do not see it.
  std::string figure(const std::string& id, double height, std::string_view title, std::string_view description) const;

 private:
  std::string body_;
};

/// Paths that fill the cells of a grid, for Svg::stretched(): neighbours of a row in one colour are one rectangle.
/// `colour_of` a row and a cell: an index into `classes`; nothing leaves the cell empty.
std::string cell_paths(std::size_t rows, std::size_t cells, std::span<const std::string> classes,
                       const std::function<std::optional<std::size_t>(std::size_t row, std::size_t cell)>& colour_of);

/// Where values stand along a drawing's width, 0 to 1, and which of them are marked.
struct Axis {
  double low = 0, high = 1;
  double margin = 0.02;  // share left free at either end
  bool logarithmic = false;
  std::vector<double> ticks;
  std::function<std::string(double)> label;

  double at(double value) const;  // beyond the ends: at the edge
  bool contains(double value) const { return value >= low && value <= high; }
};

/// From low to high with about `count` ticks at 1, 2 or 5 times a power of ten.
Axis linear_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Widens both ends to ticks.
Axis round_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Ticks at the values themselves (numbers of ranks), equal factors equally far apart.
Axis logarithmic_axis(const std::vector<double>& values, std::function<std::string(double)> label);

/// Over these positive values, equal factors equally far apart, with ticks at powers of ten; of more than ten powers at
/// every other or third.
Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label);

double tick_distance(double range, int count);
/// Enough decimals to tell ticks apart that are so far from one another.
int tick_decimals(double distance);

/// Words on the left, a drawing in the middle, a value on the right, row by row over one axis; on a narrow page words
/// and value stand above their drawing. Rows draw around y = 0, the middle of the row.
struct RowChart {
  struct Row {
    std::string label, value;
    Svg drawing;
    std::string kind;       // a class for the row
    std::string note = "";  // beside the value, smaller
  };
  Axis axis;
  std::string axis_title;
  Svg behind;  // in every row, over its whole height: a rectangle from y -1000 to 1000, say
  std::vector<Row> rows;
  std::string kind;  // a class for the chart: "thin"

  /// Becomes the drawing of the figure. `description`: for those who do not see it, as the figure's title is.
  void draw(report::Figure& figure, const std::string& description) const;
};

struct LineChart {
  struct Line {
    std::string kind;                                              // its class
    std::vector<std::pair<double, std::optional<double>>> points;  // it is broken where a value is missing
    std::string mark = {};                                         // the class of a dot at each point; "": none
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
  closing,  // the all-reduce that ends a step
  waiting,
  everyone,  // communication of all ranks, or of a group without a name
  copy,
};

/// An operation of a step on the timeline of its rank.
struct DrawnOperation {
  std::int64_t rank = 0;
  std::string track;  // "compute", which comes first, or a stream
  OperationKind kind = OperationKind::other_computation;
  double start_s = 0, end_s = 0;
  double waited_s = NAN;  // at its beginning, for other ranks; NaN: not known
};

/// The indices of up to eight of `all` (ranks of a timeline, marks of an axis), evenly from the first to the last.
std::vector<std::size_t> evenly_chosen(std::size_t all);

/// One step: a lane for each track of each rank in `operations`, coloured by kind. A lane is drawn in 2000 cells, each
/// in the colour of what took most of it, so that a step of a hundred thousand operations stays small. length_s: what
/// the width stands for, so that two charts can be compared. The caption of the figure says how to read a lane.
report::Figure lanes_chart(const std::vector<DrawnOperation>& operations, double step_s, double length_s,
                           const std::string& id, const std::string& title);

}  // namespace harness::page
