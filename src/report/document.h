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

// A report before it is written as text for a terminal, Markdown or a page: sections of pieces. Its texts are raw, as
// read from a result file; each writer escapes them for its format.

/// The tone of a cell, for writers that support colours.
enum class Tone : std::uint8_t { plain, good, bad, open };

/// A cell of a table. Converts implicitly from a text.
struct Cell {
  Cell(std::string words = "", Tone its_tone = Tone::plain, std::string brief_words = "")
      : text(std::move(words)), tone(its_tone), brief(std::move(brief_words)) {}
  Cell(const char* words) : text(words) {}

  std::string text;
  Tone tone = Tone::plain;
  std::string brief;  // shorter text for narrow tables; "": the same text
};

/// A table with column headings. Columns of words are left-aligned, columns of numbers right-aligned.
struct Table {
  struct Column {
    static constexpr int stays = std::numeric_limits<int>::max();

    std::string heading;
    bool words = false;
    int worth = stays;         // a table that is too wide drops the least first; of equals the left one
    bool names_cases = false;  // or sizes; arrange() may then select among the other columns of the table
    std::string also = {};     // further names by which arrange() finds it, such as "verdict interval"
    std::string legend = {};   // a sentence or two about the column, printed below the table

    std::string names() const { return heading + " " + also; }
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes = {};  // printed below the table as [1], [2] …, which its cells refer to
  std::string left_out = {};            // names the columns that arrange() dropped

  /// Adds a column, with a cell for each of `values`: one value for each row.
  template <class Values, class CellOf>
  void add(Column column, const Values& values, const CellOf& cell_of) {
    columns.push_back(std::move(column));
    rows.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) rows[i].push_back(cell_of(values[i]));
  }
  /// Adds a note if no cell refers to it yet. Returns the mark of a cell that does: "[1]".
  std::string note(const std::string& text);

  /// Aligned, with two spaces between columns and no trailing spaces. colored: each cell in the colour of its tone.
  std::string text(bool colored = false) const;
  /// Removes columns that are empty in every row, but never the first.
  void remove_empty_columns();
  /// The legends of the columns that have one, then what arrange() left out.
  std::vector<std::string> legends() const;
};

struct Subheading {
  std::string text;
};

struct Paragraph {
  std::string text;
  bool strong = false;  // emphasised
};

struct List {
  enum class Mark {
    bullet,
    none,     // lines of their own
    number,   // [1], [2] …: notes that a table refers to
    warning,  // to be read before the numbers are trusted
  };
  std::vector<std::string> items;
  Mark mark = Mark::bullet;
};

/// A table with legends and notes below. folded: on a page, collapsed behind a line that opens it.
struct Numbers {
  std::string caption;
  Table table;
  bool folded = false;
};

/// A drawing on a page; in text and Markdown its numbers, or nothing if a table of the document already has them.
struct Figure {
  std::string id, title, caption;
  std::string drawing = {};                                      // HTML, already escaped
  std::vector<std::pair<std::string, std::string>> legend = {};  // CSS class of the swatch, text
  Table numbers = {};                                            // the data of the drawing
};

struct Listing {
  std::string caption, text;
  bool folded = true;
};

using Piece = std::variant<Subheading, Paragraph, List, Numbers, Figure, Listing>;

struct Section {
  std::string id, title;  // an empty title continues the previous section
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
    std::string section = {};  // the section with details
  };
  std::vector<Notice> notices;  // important ones, directly below the headline
  std::vector<Section> sections;
  std::string footer;
};

/// Writes plain text. Prose is wrapped to `width` columns; tables keep their width. colored: good cells are green, bad
/// red, open yellow. Texts cannot inject terminal colours: control characters become spaces.
std::string write_text(const Document& document, std::size_t width = 120, bool colored = false);
std::string write_markdown(const Document& document);

/// How the user wants to see the table of cases.
struct TableView {
  std::size_t width = 0;                  // columns of the terminal; 0: no limit
  std::vector<std::string> columns = {};  // the columns to show, by heading without unit ("step", "change"); empty: all
};

/// Fits the tables of the document to the view. A table that is too wide first gets the brief texts of its cells (TP2
/// for a layout, "qkv, forward" for a product's sizes). Then columns that are not essential are dropped, least worth
/// first, and a line names them; then words wrap to further lines; then the remaining columns that have a worth are
/// dropped. If the view names columns, tables of cases and of sizes keep only those. Throws Error for a column that no
/// such table has.
void arrange(Document& document, const TableView& view);

// Texts of a result file are untrusted (host names, standard error of workers). They must not move a terminal's cursor,
// nor become markup in Markdown or on a page.

/// Returns one line that is safe on a terminal: line breaks, control characters (C1 included) and marks that change the
/// text direction become spaces, invalid UTF-8 becomes '?'. Table and wrapped() call this themselves.
std::string one_line(std::string_view text);

/// For files: removes the same characters but keeps line breaks and tabs; invalid UTF-8 becomes U+FFFD.
std::string cleaned(std::string_view text);

/// cleaned() for HTML and XML, between tags or within a quoted attribute, with all markup escaped.
std::string escaped_markup(std::string_view text);

/// cleaned() as one line of Markdown, with all markup escaped.
std::string inline_markdown(std::string_view text);

/// Breaks a paragraph at `width` columns; further lines are indented by `indent` spaces.
std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent);

/// Width on a terminal: the number of UTF-8 characters, each counted as one column.
std::size_t columns_of(std::string_view text);

}  // namespace harness::report
