#pragma once

#include <string>
#include <string_view>

namespace harness::page {

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

}  // namespace harness::page
