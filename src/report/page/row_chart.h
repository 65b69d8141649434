#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "report/page/axis.h"
#include "report/page/svg.h"

namespace harness::page {

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

}  // namespace harness::page
