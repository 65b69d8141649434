#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace harness::report {

/// The tone that a cell gives its row, for writers that have colours.
enum class Tone : std::uint8_t { plain, good, bad, open };

/// A text is a cell; what else a cell knows is for those who sort and colour.
struct Cell {
  Cell(std::string words = "", Tone its_tone = Tone::plain) : text(std::move(words)), tone(its_tone) {}
  Cell(const char* words) : text(words) {}

  std::string text;
  Tone tone = Tone::plain;
  std::string brief = {};                                 // the text where space is short; "": the same text
  double key = -std::numeric_limits<double>::infinity();  // what rows are sorted by; one without comes first
};

/// Cells with headings. Columns of words are left-aligned, columns of numbers right-aligned.
struct Table {
  struct Column {
    /// The columns that arrange() looks for in a table of cases, or of sizes.
    enum class Id : std::uint8_t { other, name, use, change, verdict, size };
    static constexpr int stays = std::numeric_limits<int>::max();

    std::string heading;
    bool words = false;
    int worth = stays;  // where a table of cases is too wide, the least goes first; of equals the left one
    Id id = Id::other;
    std::string legend = {};  // a sentence or two about the column, below the table
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

/// The table within `width` columns, its cells of words continued on further lines. Nothing where that is not enough.
std::optional<Table> wrapped_within(const Table& table, std::size_t width);

/// The table within `width` columns, with nothing left out. Cells of words continue on further lines; if that is not
/// enough, columns move to tables of their own that repeat the columns of words before the first number. A column that
/// is wider by itself stays so.
std::vector<Table> narrowed(const Table& table, std::size_t width);

}  // namespace harness::report
