#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "report/document.h"

namespace harness::report {
namespace {

// Paragraphs and lists follow each other without a gap; tables, listings and headings have blank lines around them.
class TextWriter {
 public:
  TextWriter(std::size_t width, bool colored) : width_(width), colored_(colored) {}
  std::string out;

  void operator()(const Subheading& piece) {
    gap();  // none below: a heading stays attached to what follows
    out += one_line(piece.text) + "\n";
  }
  void operator()(const Paragraph& piece) { paragraph(piece.text, 2); }
  void operator()(const List& piece) {
    for (std::size_t i = 0; i < piece.items.size(); ++i) {
      std::string mark;
      if (piece.mark == List::Mark::bullet) mark = "- ";
      if (piece.mark == List::Mark::number) mark = fmt::format("[{}] ", i + 1);
      if (piece.mark == List::Mark::warning) mark = "! ";
      paragraph(mark + piece.items[i], piece.mark == List::Mark::number ? 4 : 2);
    }
  }
  void operator()(const Numbers& piece) {
    table(piece.caption, piece.table);
    for (const std::string& legend : piece.table.legends()) paragraph(legend, 2);
    (*this)(List{piece.table.notes, List::Mark::number});
  }
  void operator()(const Figure& piece) { table(piece.title + " " + piece.caption, piece.numbers); }
  void operator()(const Listing& piece) {
    gap();
    if (!piece.caption.empty()) out += wrapped(piece.caption, width_, 2);
    for (const std::string& line : split_text(piece.text, "\n")) out += "  " + one_line(line) + "\n";
    end_block();
  }

  void heading(const std::string& title) {
    gap();
    out += one_line(title) + "\n";
    end_block();
  }
  void paragraph(const std::string& text, std::size_t indent) {
    if (next_ == Gap::always) gap();
    out += wrapped(text, width_, indent);
    next_ = Gap::but_before_prose;
  }
  // Forces a gap before whatever follows.
  void end_block() { next_ = Gap::always; }

 private:
  void table(const std::string& caption, const Table& table) {
    if (table.rows.empty()) return;
    gap();
    if (!caption.empty()) out += wrapped(caption, width_, 2);
    out += table.text(colored_);
    end_block();
  }
  void gap() {
    if (next_ != Gap::none && !out.empty()) out += "\n";
    next_ = Gap::none;
  }

  enum class Gap { none, but_before_prose, always };

  std::size_t width_;
  bool colored_;
  Gap next_ = Gap::but_before_prose;  // between the last piece and the next
};

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
    (*this)(List{piece.table.notes, List::Mark::number});
  }
  void operator()(const Figure& piece) {
    if (piece.numbers.rows.empty()) return;
    out += fmt::format("**{}** {}\n\n", inline_markdown(piece.title), inline_markdown(piece.caption));
    table(piece.numbers, "");
  }
  void operator()(const Listing& piece) {
    // A fence longer than any run of backticks in the text, so that the text cannot close it.
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

// Maps each valid character through `keep` and replaces invalid UTF-8 by `broken`.
template <class Keep>
std::string filtered(std::string_view text, std::string_view broken, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.bytes == 0) {
      out += broken;
      ++i;
      continue;
    }
    out += keep(c.code, text.substr(i, c.bytes));
    i += c.bytes;
  }
  return out;
}

}  // namespace

std::string write_text(const Document& document, std::size_t width, bool colored) {
  TextWriter writer(width, colored);
  if (!document.title.empty()) writer.heading(document.title);
  if (!document.subtitle.empty()) writer.paragraph(document.subtitle, 0);
  if (!document.headline.empty()) {
    writer.paragraph(document.headline, 0);
    writer.end_block();
  }
  for (const Document::Notice& notice : document.notices) writer.paragraph("! " + notice.text, 2);
  for (const Section& section : document.sections) {
    if (section.pieces.empty()) continue;
    if (!section.title.empty()) writer.heading(section.title);
    for (const Piece& piece : section.pieces) std::visit(writer, piece);
    writer.end_block();
  }
  if (!document.footer.empty()) writer.paragraph(document.footer, 0);
  return std::move(writer.out);
}

std::string write_markdown(const Document& document) {
  MarkdownWriter writer;
  const auto block = [&](const std::string& text) { writer.out += text + "\n\n"; };
  if (!document.title.empty()) block("# " + inline_markdown(document.title));
  if (!document.subtitle.empty()) block(inline_markdown(document.subtitle));
  if (!document.headline.empty()) block("**" + inline_markdown(document.headline) + "**");
  for (const Document::Notice& notice : document.notices) block("> " + inline_markdown(notice.text));
  for (const Section& section : document.sections) {
    const std::size_t before = writer.out.size();
    if (!section.title.empty()) block("## " + inline_markdown(section.title));
    const std::size_t headed = writer.out.size();
    for (const Piece& piece : section.pieces) std::visit(writer, piece);
    if (writer.out.size() == headed) writer.out.resize(before);  // nothing but drawings
  }
  if (!document.footer.empty()) block(inline_markdown(document.footer));
  // Ends the file with a single line break.
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return std::move(writer.out);
}

std::size_t columns_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::string one_line(std::string_view text) {
  return filtered(text, "?", [](std::uint32_t code, std::string_view character) {
    return is_unprintable(code) ? std::string_view(" ") : character;
  });
}

std::string cleaned(std::string_view text) {
  return filtered(text, "\uFFFD", [](std::uint32_t code, std::string_view character) {
    const bool layout = code == '\n' || code == '\t';
    return is_unprintable(code) && !layout ? std::string_view() : character;
  });
}

std::string escaped_markup(std::string_view text) {
  return replaced(cleaned(text), {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string inline_markdown(std::string_view text) {
  return replaced(cleaned(text), {{'\n', " "},
                                  {'\t', " "},
                                  {'<', "&lt;"},
                                  {'&', "&amp;"},
                                  {'\\', "\\\\"},
                                  {'`', "\\`"},
                                  {'[', "\\["},
                                  {']', "\\]"},
                                  {'*', "\\*"},
                                  {'|', "\\|"}});
}

std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent) {
  std::istringstream words(one_line(paragraph));
  std::string out, line;
  for (std::string word; words >> word;) {
    if (words >> std::ws && words.peek() == '%') {  // a number and its sign stay together
      std::string sign;
      words >> sign;
      word += " " + sign;
    }
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      out += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + '\n';
}

}  // namespace harness::report
