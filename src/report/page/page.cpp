#include "report/page/page.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/clean_text.h"

namespace harness::page {

using report::escaped_markup;

namespace {

// Nothing may be loaded, sent, framed or run; styles are those of this file.
constexpr const char* policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

// May go on in a new line after the name of a variable: "allreduce_algorithm=halving_doubling" is as wide as a phone.
std::string breakable(std::string_view text) {
  return replaced(text, {{'=', "=<wbr/>"}});
}

class Writer {
 public:
  std::string out;

  void table(const report::Table& table, const std::string& caption) {
    if (table.rows.empty()) return;
    out += R"(<div class="scroll" tabindex="0"><table class="">)";
    if (!caption.empty()) out += "<caption>" + escaped_markup(caption) + "</caption>";
    const auto kind_of = [&](std::size_t c) { return c == 0 || table.columns[c].words ? " class=\"w\"" : ""; };
    out += "\n<thead><tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      out += fmt::format(R"(<th scope="col"{}>{}</th>)", kind_of(c), escaped_markup(table.columns[c].heading));
    }
    out += "</tr></thead>\n<tbody>";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (std::size_t c = 0; c < row.size(); ++c) {
        const char* tag = c == 0 ? "th" : "td";
        out += fmt::format("<{}{}{}>{}</{}>", tag, c == 0 ? " scope=\"row\"" : "", kind_of(c),
                           c == 0 ? breakable(escaped_markup(row[c].text)) : escaped_markup(row[c].text), tag);
      }
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }

  void operator()(const report::Subheading& piece) { out += "<h3>" + escaped_markup(piece.text) + "</h3>\n"; }
  void operator()(const report::Paragraph& piece) {
    out += fmt::format("<p{}>{}</p>\n", piece.strong ? " class=\"strong\"" : "", escaped_markup(piece.text));
  }
  void operator()(const report::List& piece) {
    if (piece.items.empty()) return;
    out += piece.mark == report::List::Mark::warning ? "<ul class=\"warnings\">" : "<ul>";
    for (std::size_t i = 0; i < piece.items.size(); ++i) {
      const std::string number = piece.mark == report::List::Mark::number ? fmt::format("[{}] ", i + 1) : "";
      out += "<li>" + number + escaped_markup(piece.items[i]) + "</li>\n";
    }
    out += "</ul>\n";
  }
  void operator()(const report::Numbers& piece) {
    if (piece.table.rows.empty()) return;
    if (piece.folded) out += "<details><summary>" + escaped_markup(piece.caption) + "</summary>";
    table(piece.table, piece.folded ? "" : piece.caption);
    if (piece.folded) out += "</details>\n";
    (*this)(report::List{piece.table.legends()});
  }
  void operator()(const report::Figure& piece) {
    out += fmt::format(R"(<figure id="{}"><figcaption><b>{}</b> {})", escaped_markup(piece.id),
                       escaped_markup(piece.title), escaped_markup(piece.caption));
    if (!piece.legend.empty()) {
      out += R"(<ul class="legend">)";
      for (const auto& [swatch, words] : piece.legend) {
        out += fmt::format(
            R"(<li><svg aria-hidden="true"><rect class="{}" x="1" y="1" width="12" height="10"/></svg>{}</li>)", swatch,
            escaped_markup(words));
      }
      out += "</ul>";
    }
    out += "</figcaption>\n" + piece.drawing + "\n";
    if (!piece.numbers.rows.empty()) {
      out += "<details><summary>The numbers as a table</summary>";
      table(piece.numbers, "");
      out += "</details>";
    }
    out += "</figure>\n";
  }
  void operator()(const report::Listing& piece) {
    if (piece.folded) {
      out += "<details class=\"printed\"><summary>" + escaped_markup(piece.caption) + "</summary>";
    } else {
      out += "<p>" + escaped_markup(piece.caption) + "</p>";
    }
    out += R"(<pre tabindex="0">)" + escaped_markup(piece.text) + "</pre>" + (piece.folded ? "</details>" : "") + "\n";
  }
};

}  // namespace

std::string page(const report::Document& document) {
  Writer writer;
  std::string& out = writer.out;
  out = fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="{}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta name="referrer" content="no-referrer"/>
<title>{}</title>
<style>{}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the results</a>
<header>
<h1>{}</h1>
<p class="subtitle">{}</p>
<p class="headline" id="headline">{}</p>
)",
                    policy, escaped_markup(document.title), style, escaped_markup(document.title),
                    escaped_markup(document.subtitle), escaped_markup(document.headline));
  for (const auto& notice : document.notices) {
    const std::string text = escaped_markup(notice.text);
    out +=
        "<p class=\"notice\">" +
        (notice.section.empty() ? text : fmt::format(R"(<a href="#{}">{}</a>)", escaped_markup(notice.section), text)) +
        "</p>\n";
  }
  out += "</header>\n<nav aria-label=\"Sections\"><ul>";
  for (const auto& section : document.sections) {
    out += fmt::format(R"(<li><a href="#{}">{}</a></li>)", escaped_markup(section.id), escaped_markup(section.title));
  }
  out += "</ul></nav>\n<main id=\"content\">\n";
  for (const auto& section : document.sections) {
    out += fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n", escaped_markup(section.id),
                       escaped_markup(section.title));
    for (const auto& piece : section.pieces) std::visit(writer, piece);
    out += "</section>\n";
  }
  out += "</main>\n<footer>" + escaped_markup(document.footer) + "</footer>\n</body>\n</html>\n";
  return std::move(writer.out);
}

}  // namespace harness::page
