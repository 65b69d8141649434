#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace harness::report {

// A report before it is text for a terminal, Markdown or a page: sections of pieces. The texts in it are raw, as they
// come from a result file; each writer escapes them for its format.

/// The tone that a cell gives its row, for writers that have colours.
enum class Tone : std::uint8_t { plain, good, bad, open };

/// A text is a cell; the tone is for writers that have colours.
struct Cell {
  Cell(std::string words = "", Tone its_tone = Tone::plain) : text(std::move(words)), tone(its_tone) {}
  Cell(const char* words) : text(words) {}

  std::string text;
  Tone tone = Tone::plain;
  std::string brief = {};  // the text where space is short; "": the same text
};

/// Cells with headings. Columns of words are left-aligned, columns of numbers right-aligned.
struct Table {
  struct Column {
    static constexpr int stays = std::numeric_limits<int>::max();

    std::string heading;
    bool words = false;
    int worth = stays;         // where a table is too wide, the least goes first; of equals the left one
    bool names_cases = false;  // or their sizes: the other columns of the table can be asked for (arrange())
    std::string legend = {};   // a sentence or two about the column, below the table
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;

  /// Aligned with two spaces between; no trailing spaces. colored: each cell in the colour of its tone.
  std::string text(bool colored = false) const;
  /// How wide text() makes each column, and all of them.
  std::vector<std::size_t> widths() const;
  std::size_t width() const;

  void remove_column(std::size_t column);
  /// Takes out the columns that no row has anything in, but never the first.
  void remove_empty_columns();
  /// The legends of the columns that have one.
  std::vector<std::string> legends() const;
};

struct Subheading {
  std::string text;
};

struct Paragraph {
  std::string text;
  bool strong = false;  // to be seen first
};

struct List {
  enum class Mark {
    bullet,
    none,     // lines of their own
    number,   // [1], [2] …: notes that a table points to
    warning,  // to be read before anything is believed
  };
  std::vector<std::string> items;
  Mark mark = Mark::bullet;
};

/// A table, below it the legends of its columns. folded: on a page, behind a line that opens it.
struct Numbers {
  std::string caption;
  Table table;
  bool folded = false;
};

/// A drawing on a page; in text and Markdown its numbers, or nothing where a table of the document has them.
struct Figure {
  std::string id, title, caption;
  std::string drawing;                                      // HTML, escaped by what made it
  std::vector<std::pair<std::string, std::string>> legend;  // class of the swatch, text
  Table numbers = {};                                       // what is drawn
};

struct Listing {
  std::string caption, text;
  bool folded = true;
};

using Piece = std::variant<Subheading, Paragraph, List, Numbers, Figure, Listing>;

struct Section {
  std::string id, title;  // without a title: it goes on where the one before it ended
  std::vector<Piece> pieces;

  template <class P>
  void add(P piece) {
    pieces.emplace_back(std::move(piece));
  }
  template <class P>
  void add(std::optional<P> piece) {
    if (piece) pieces.emplace_back(std::move(*piece));
  }
};

struct Document {
  std::string title, subtitle, headline;
  struct Notice {
    std::string text;
    std::string section = {};  // where there is more about it
  };
  std::vector<Notice> notices;  // what must not be missed: directly below the headline
  std::vector<Section> sections;
  std::string footer;
};

/// Plain text. Prose is wrapped to `width` columns; tables are as wide as they are. colored: what is good in a table is
/// green, bad red, open yellow. A text of the document cannot set colours: controls in it become spaces.
std::string write_text(const Document& document, std::size_t width = 120, bool colored = false);
std::string write_markdown(const Document& document);

/// How a person wants to see the table of cases.
struct TableView {
  std::size_t width = 0;                  // columns of the terminal; 0: no limit
  std::vector<std::string> columns = {};  // which ones, by their headings without units ("step", "change"); empty: all
};

/// Arranges the tables of the document. One that is wider than the view gets the brief texts of its cells first (TP2
/// for a layout, "qkv, forward" for a product's sizes); then columns that are not essential go, least worth first, and
/// a line names them; then words go on in further lines; then the other columns that have a worth go. Of tables of
/// cases and of sizes only columns that were asked for stay, if any were. Throws Error for a
/// column that no such table of the document has.
void arrange(Document& document, const TableView& view);

// Texts of a result file may come from anywhere (host names, standard error of workers). On a terminal they must not
// move the cursor, in Markdown or on a page they must not become markup.

/// One line for a terminal: line breaks, control characters (C1's included) and marks that turn the direction of
/// writing become spaces, what is not UTF-8 '?'. Table and wrapped() do this themselves.
std::string one_line(std::string_view text);

/// For files: the same characters go, but line breaks and tabs stay; what is not UTF-8 becomes U+FFFD.
std::string cleaned(std::string_view text);

/// cleaned() for HTML and XML, between tags or within a quoted attribute, with everything escaped that would be markup.
std::string escaped_markup(std::string_view text);

/// cleaned() in one line of Markdown, with everything escaped that would be markup.
std::string inline_markdown(std::string_view text);

/// Breaks a paragraph at `width` columns; further lines are indented by `indent` spaces.
std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent);

/// Width on a terminal: UTF-8 characters, taken to be one column each.
std::size_t columns_of(std::string_view text);

}  // namespace harness::report
