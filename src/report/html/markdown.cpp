#include <fmt/format.h>

#include <algorithm>

#include "report/html/escape.h"
#include "report/html/page.h"

namespace harness::html {
namespace {

class Writer {
 public:
  std::string out;

  void table(const Table& table, const std::string& caption) {
    if (table.rows.empty()) return;
    if (!caption.empty()) out += inline_markdown(caption) + "\n\n";
    for (const auto& column : table.columns) out += "| " + inline_markdown(column.heading) + " ";
    out += "|\n";
    for (std::size_t c = 0; c < table.columns.size(); ++c) out += c == 0 || table.columns[c].words ? "|:---" : "|---:";
    out += "|\n";
    for (const auto& row : table.rows) {
      for (const auto& cell : row) out += "| " + inline_markdown(cell) + " ";
      out += "|\n";
    }
    out += "\n";
  }

  void operator()(const Paragraph& piece) {
    const std::string text = inline_markdown(piece.text);
    out += (piece.strong ? "**" + text + "**" : text) + "\n\n";
  }
  void operator()(const Bullets& piece) {
    for (const auto& item : piece.items) out += "- " + inline_markdown(item) + "\n";
    out += "\n";
  }
  void operator()(const Numbers& piece) { table(piece.table, piece.caption); }
  void operator()(const Figure& piece) {
    out += fmt::format("**{}** {}\n\n", inline_markdown(piece.title), inline_markdown(piece.caption));
    table(piece.numbers, "");
  }
  void operator()(const Listing& piece) {
    // A fence longer than any run of backticks in the text cannot be closed by it.
    std::size_t longest = 2, run = 0;
    for (const char c : piece.text) {
      run = c == '`' ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    const std::string fence(longest + 1, '`');
    out += fmt::format("{}\n\n{}\n{}\n{}\n\n", inline_markdown(piece.caption), fence, cleaned(piece.text), fence);
  }
};

}  // namespace

std::string markdown(const Document& document) {
  Writer writer;
  writer.out = fmt::format("# {}\n\n{}\n\n**{}**\n\n", inline_markdown(document.title),
                           inline_markdown(document.subtitle), inline_markdown(document.headline));
  for (const auto& notice : document.notices) writer.out += "> " + inline_markdown(notice.text) + "\n\n";
  for (const auto& section : document.sections) {
    writer.out += "## " + inline_markdown(section.title) + "\n\n";
    for (const auto& piece : section.pieces) std::visit(writer, piece);
  }
  writer.out += inline_markdown(document.footer) + "\n";
  return std::move(writer.out);
}

}  // namespace harness::html
