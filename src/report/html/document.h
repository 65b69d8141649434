#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "report/table.h"

namespace harness::html {

// A report before it is a page or Markdown: sections of pieces. Texts are as they come; whoever writes them escapes.

struct Paragraph {
  std::string text;
  bool strong = false;  // to be seen first
};

struct Bullets {
  std::vector<std::string> items;
};

/// Numbers to read. folded: behind a line that opens it.
struct Numbers {
  std::string caption;
  Table table;
  bool folded = false;
};

struct Figure {
  std::string id, title, caption;
  std::string drawing;                                      // HTML, made here alone and escaped by what made it
  std::vector<std::pair<std::string, std::string>> legend;  // class of the swatch, text
  Table numbers;                                            // what is drawn; Markdown shows this in its place
};

/// Verbatim text.
struct Listing {
  std::string caption, text;
  bool folded = true;
};

using Piece = std::variant<Paragraph, Bullets, Numbers, Figure, Listing>;

struct Section {
  std::string id, title;
  std::vector<Piece> pieces;
};

struct Document {
  std::string title, subtitle, headline;
  struct Notice {
    std::string text;
    std::string section = "";  // where more of it stands
  };
  std::vector<Notice> notices;  // what must not be missed: directly below the headline
  std::vector<Section> sections;
  std::string footer;
};

}  // namespace harness::html
