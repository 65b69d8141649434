#include <fmt/format.h>

#include <algorithm>

#include "report/clean_text.h"
#include "report/document.h"

namespace harness::report {
namespace {

class MarkdownWriter {
 public:
  std::string out;

  void operator()(const Subheading& piece) { out += "### " + inline_markdown(piece.text) + "\n\n"; }
  void operator()(const Paragraph& piece) {
    const std::string text = inline_markdown(piece.text);
    out += (piece.strong ? "**" + text + "**" : text) + "\n\n";
  }
  void operator()(const List& piece) {
    for (std::size_t i = 0; i < piece.items.size(); ++i) {
      out += "- ";
      if (piece.mark == List::Mark::number) out += fmt::format("\\[{}\\] ", i + 1);
      if (piece.mark == List::Mark::warning) out += "**Warning:** ";
      out += inline_markdown(piece.items[i]) + "\n";
    }
    if (!piece.items.empty()) out += "\n";
  }
  void operator()(const Numbers& piece) {
    table(piece.table, piece.caption);
    (*this)(List{piece.table.legends()});
  }
  void operator()(const Figure& piece) {
    if (piece.numbers.rows.empty()) return;
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

 private:
  void table(const Table& table, const std::string& caption) {
    if (table.rows.empty()) return;
    if (!caption.empty()) out += inline_markdown(caption) + "\n\n";
    for (const auto& column : table.columns) out += "| " + inline_markdown(column.heading) + " ";
    out += "|\n";
    for (const auto& column : table.columns) out += column.words ? "|:---" : "|---:";
    out += "|\n";
    for (const auto& row : table.rows) {
      for (const auto& cell : row) out += "| " + inline_markdown(cell.text) + " ";
      out += "|\n";
    }
    out += "\n";
  }
};

}  // namespace

std::string write_markdown(const Document& document) {
  MarkdownWriter writer;
  const auto block = [&](const std::string& text) { writer.out += text + "\n\n"; };
  if (!document.title.empty()) block("# " + inline_markdown(document.title));
  if (!document.subtitle.empty()) block(inline_markdown(document.subtitle));
  if (!document.headline.empty()) block("**" + inline_markdown(document.headline) + "**");
  for (const Document::Notice& notice : document.notices) block("> " + inline_markdown(notice.text));
  for (const Section& section : document.sections) {
    if (section.pieces.empty()) continue;
    if (!section.title.empty()) block("## " + inline_markdown(section.title));
    for (const Piece& piece : section.pieces) std::visit(writer, piece);
  }
  if (!document.footer.empty()) block(inline_markdown(document.footer));
  // One line break ends the file.
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return std::move(writer.out);
}

}  // namespace harness::report
