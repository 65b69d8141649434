#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/breakdown.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "config/backend.h"
#include "report/sections.h"

namespace harness::page {

using report::escaped_markup;

namespace {

// Blocks loading, sending, framing and scripts; allows only inline styles.
constexpr const char* policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

// For narrow pages: the name of a case may break after its variable, because "allreduce_algorithm=halving_doubling" is
// as wide as a phone. In other cells a number keeps its percent sign on its line.
std::string breakable(const std::string& text, bool names_case) {
  return names_case ? replaced(text, {{'=', "=<wbr/>"}}) : replaced_all(text, " %", "\u00a0%");
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
                           breakable(escaped_markup(row[c].text), c == 0), tag);
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
    (*this)(report::List{piece.table.legends()});
    (*this)(report::List{piece.table.notes, report::List::Mark::number});
    if (piece.folded) out += "</details>\n";
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
    const std::string caption = escaped_markup(piece.caption);
    const std::string text = R"(<pre tabindex="0">)" + escaped_markup(piece.text) + "</pre>";
    out += piece.folded ? fmt::format(R"(<details class="printed"><summary>{}</summary>{}</details>)", caption, text)
                        : fmt::format("<p>{}</p>{}", caption, text);
    out += "\n";
  }
};

// Colours after Okabe and Ito, "Color Universal Design" (2008), which are distinguishable with any colour vision; words
// repeat their meaning. Dark mode: the same hues, lighter.
const char* const style = R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1b1a; --soft: #595957; --rule: #d8d7d2; --faint: #efeeea; --link: #0b5a94;
  --faster: #0072b2; --slower: #d55e00; --same: #8a8a86; --band: #f1ead6; --notice: #fbf4df;
  --matmul: #0072b2; --attention: #cc79a7; --compute: #7cc0ea; --optimizer: #009e73;
  --tensor: #e69f00; --data: #d55e00; --pipeline: #b9a800; --world: #77756f; --waiting: #cfcbc1;
  --h0: #f7f6f2; --h1: #fde9c9; --h2: #fbcf94; --h3: #f2a65a; --h4: #dd7a2c; --h5: #b04a17; --h6: #6b210c;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Source Serif 4", "Noto Serif", Cambria, Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono", "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #15171a; --ink: #e9e7e1; --soft: #a9a69e; --rule: #3a3c40; --faint: #212428; --link: #7fbdf0;
  --faster: #56b4e9; --slower: #f0883e; --same: #84837e; --band: #2c2a20; --notice: #2b2718;
  --matmul: #4d9fd6; --attention: #d98fb8; --compute: #2f6c92; --optimizer: #2fb98f;
  --tensor: #e8ac25; --data: #e8742c; --pipeline: #d8cc4a; --world: #8d8b85; --waiting: #4c4f55;
  --h0: #212428; --h1: #3b2c1c; --h2: #5f3d1b; --h3: #8f551c; --h4: #c5742a; --h5: #efa35a; --h6: #ffe2b8;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.0625rem/1.55 var(--serif); }
main, body > header, body > footer, nav { max-width: 56rem; margin: 0 auto; padding: 0 1.25rem; }
body > header { padding-top: 3rem; }
p, ul, .headline { max-width: 42rem; }
a { color: var(--link); text-underline-offset: .15em; text-decoration-thickness: .06em; }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid var(--link); outline-offset: 3px; border-radius: 2px; }
.skip { position: absolute; left: -100rem; top: .5rem; background: var(--paper); padding: .4rem .8rem; }
.skip:focus { left: 1rem; }
h1 { font-size: 1.125rem; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
.subtitle { color: var(--soft); font: .875rem/1.5 var(--sans); margin: .15rem 0 1.6rem; overflow-wrap: anywhere; }
.headline { font-size: 1.6rem; line-height: 1.32; margin: 0 0 1.2rem; text-wrap: pretty; overflow-wrap: anywhere; }
.notice { background: var(--notice); padding: .55rem .9rem; margin: .6rem 0; font: .9375rem/1.5 var(--sans);
  border-left: 3px solid var(--slower); overflow-wrap: anywhere; }
nav { font: .875rem/1.7 var(--sans); margin-top: 1.6rem; }
nav ul { list-style: none; margin: 0; padding: .6rem 0; max-width: none; display: flex; flex-wrap: wrap; column-gap: 1.3rem;
  border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); }
nav a { text-decoration: none; } nav a:hover { text-decoration: underline; }
section { margin: 3rem 0 0; }
h2 { font-size: 1.3125rem; line-height: 1.3; font-weight: 600; margin: 0 0 .8rem; scroll-margin-top: 1rem; }
p, li { overflow-wrap: anywhere; } li { margin: .3rem 0; } ul { padding-left: 1.2rem; }
.strong { font-weight: 600; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font: .875rem/1.45 var(--sans); font-variant-numeric: tabular-nums lining-nums; margin: .4rem 0; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; caption-side: top; }
th, td { padding: .28rem .9rem .28rem 0; text-align: right; vertical-align: top; border-bottom: 1px solid var(--faint); }
th { max-width: 22rem; overflow-wrap: break-word; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--rule); vertical-align: bottom; }
.w { text-align: left; overflow-wrap: break-word; min-width: 5rem; } tbody th { vertical-align: top; color: inherit; font-weight: inherit; border-bottom-color: var(--faint); }
th:last-child, td:last-child { padding-right: 0; }
td:not(.w) { white-space: nowrap; }
details { font: .875rem/1.5 var(--sans); margin: .6rem 0; }
summary { cursor: pointer; color: var(--link); width: fit-content; }
pre { font: .8125rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; background: var(--faint); padding: .8rem 1rem;
  margin: .5rem 0; tab-size: 2; }
figure { margin: 1.4rem 0 1.8rem; }
figcaption { font: .875rem/1.5 var(--sans); color: var(--soft); max-width: 46rem; margin-bottom: .9rem; }
figcaption b { color: var(--ink); font-weight: 600; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .6rem 0 0; padding: 0; max-width: none; color: var(--ink); }
.legend li { margin: 0; display: flex; align-items: center; gap: .4rem; font-size: .8125rem; }
.legend svg { width: 14px; height: 12px; flex: none; }
.rows { display: grid; grid-template-columns: fit-content(17rem) minmax(12rem, 1fr) max-content; column-gap: .9rem;
  font: .8125rem/1.3 var(--sans); font-variant-numeric: tabular-nums lining-nums; }
.row { display: contents; }
.label { align-self: center; text-align: right; overflow-wrap: anywhere; padding: .25rem 0; }
.value { align-self: center; padding: .25rem 0; white-space: nowrap; }
.plot { position: relative; min-height: 36px; }
.plot > svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; }
.value small { display: block; font-size: .75rem; color: var(--soft); }
.compact .plot { min-height: 26px; }
.thin .plot { min-height: 20px; } .thin .label, .thin .value { padding: .05rem 0; }
.gap .plot, .gap .label, .gap .value { margin-top: 0; padding-top: .7rem; } .gap .plot { min-height: 31px; }
svg text { font: 12px var(--sans); fill: var(--soft); font-variant-numeric: tabular-nums lining-nums; }
.drawing { display: block; overflow: visible; } .open { overflow: visible; }
svg .panel, svg .note { fill: var(--ink); } svg .panel { font-weight: 600; }
.grid { stroke: var(--rule); stroke-width: 1; shape-rendering: crispEdges; }
.zero { stroke: var(--ink); stroke-width: 1; shape-rendering: crispEdges; }
.reference { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 3; }
.band { fill: var(--band); } .empty { fill: var(--faint); }
.interval { stroke: var(--ink); stroke-width: 1.5; }
.link { stroke: var(--soft); stroke-width: 1; shape-rendering: crispEdges; }
.curve { stroke: var(--mark, var(--faster)); stroke-width: 2; } .mark { fill: var(--mark, var(--faster)); stroke: var(--paper); stroke-width: 1.5; }
.bar { fill: var(--mark, var(--same)); }
.v-faster { --mark: var(--faster); } .v-slower { --mark: var(--slower); } .v-same, .v-none { --mark: var(--same); }
.v-baseline { --mark: var(--ink); } .v-unresolved { --mark: var(--same); }
.v-unresolved .bar, .v-none .bar, .legend .v-unresolved { fill: var(--paper); stroke: var(--same); stroke-width: 1.2; stroke-dasharray: 3 2; }
.w-total { --mark: var(--ink); } .w-total .label, .w-total .value { font-weight: 600; } .w-other { --mark: var(--world); }
.k-matmul { --mark: var(--matmul); } .k-attention { --mark: var(--attention); } .k-compute { --mark: var(--compute); }
.k-optimizer { --mark: var(--optimizer); } .k-tensor { --mark: var(--tensor); } .k-data { --mark: var(--data); }
.k-pipeline { --mark: var(--pipeline); } .k-world { --mark: var(--world); } .k-everyone { --mark: var(--data); } .k-waiting { --mark: var(--waiting); } .k-copy { --mark: var(--same); }
path[class^="k-"], .legend rect { fill: var(--mark); }
.h0 { fill: var(--h0); --mark: var(--h0); } .h1 { fill: var(--h1); --mark: var(--h1); } .h2 { fill: var(--h2); --mark: var(--h2); }
.h3 { fill: var(--h3); --mark: var(--h3); } .h4 { fill: var(--h4); --mark: var(--h4); } .h5 { fill: var(--h5); --mark: var(--h5); }
.h6 { fill: var(--h6); --mark: var(--h6); }
body > footer { color: var(--soft); font: .8125rem/1.5 var(--sans); padding-top: 3rem; padding-bottom: 3rem; }
@media (max-width: 42rem) {
  body { font-size: 1rem; } body > header { padding-top: 1.6rem; } .headline { font-size: 1.3rem; }
  main, body > header, body > footer, nav { padding-left: 1rem; padding-right: 1rem; }
  .rows { display: block; }
  .row { display: grid; grid-template-columns: 1fr auto; column-gap: .8rem; align-items: end; margin-top: .35rem; }
  .row .plot, .row > .drawing { grid-column: 1 / 3; grid-row: 2; }
  .label { text-align: left; padding: 0 0 .1rem; align-self: end; } .value { padding: 0 0 .1rem; align-self: end; }
  .plot, .compact .plot { min-height: 24px; } .thin .plot { min-height: 18px; } .value { text-align: right; }
  th, td { padding-right: .6rem; } td:not(.w) { white-space: normal; } .w { max-width: 14rem; }
}
@media print {
  details.printed::details-content { content-visibility: visible; block-size: auto; opacity: 1; }
  :root { color-scheme: light; }
  body { font-size: 10pt; } main, body > header, body > footer { max-width: none; padding: 0; }
  nav, .skip, details:not([open], .printed) { display: none; }
  h2, figcaption, caption { break-after: avoid; } figure, tr, .notice, li { break-inside: avoid; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)css";

// "timeline-baseline", "timeline-best"
std::string id_of(const char* chart, const analysis::CaseSummary& row) {
  return fmt::format("{}-{}", chart, store::is_reference(row.role) ? "baseline" : "best");
}

report::Section changes_section(const store::Result& result, const analysis::Findings& findings) {
  const bool compares = !analysis::sweeps_sizes_alone(result);  // no size is better than another
  report::Section section{"changes", compares ? "What each change does" : "All sizes", {}};
  if (compares) section.add(tornado(result, findings.summary));
  if (compares && section.pieces.empty())
    section.add(report::Paragraph{"No change has been compared with the baseline."});
  report::Table cases = report::case_table(result, findings.summary);
  const bool folded = compares && cases.notes.empty();  // a note says why a case has no bar above
  section.add(report::Numbers{compares ? "All cases" : "", std::move(cases), folded});
  return section;
}

report::Section losses_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"losses", "Where the time goes", {}};
  // With a single operation, its rates already tell everything.
  if (report::measured_by(result) != report::Measured::training) return section;
  const analysis::StepFindings* baseline = nullptr;
  for (const analysis::CaseSummary* row : findings.before_and_after()) {
    const analysis::StepFindings* step = findings.step_of(*row);
    if (step == nullptr) continue;
    report::add_step(result, findings, *step, baseline, section);
    if (step->waterfall && !findings.summary.predicted)  // the drawing is of measured steps
      section.add(waterfall_chart(*step->waterfall, id_of("waterfall", *row), report::short_name(row->name)));
    if (store::is_reference(row->role)) baseline = step;
  }
  if (section.pieces.empty())
    section.add(report::Paragraph{fmt::format("The file has no {} of the baseline.", analysis::step_in_parts(result))});
  return section;
}

report::Section timeline_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"timeline", "One step", {}};
  std::vector<std::pair<const analysis::CaseSummary*, analysis::DrawnStep>> steps;
  double length_s = 0;  // of the longest step, so that the charts can be compared
  for (const analysis::CaseSummary* row : findings.before_and_after()) {
    steps.emplace_back(row, analysis::drawn_step(result, row->case_index));
    for (const analysis::DrawnInterval& x : steps.back().second.intervals) length_s = std::max(length_s, x.end_s);
  }
  for (const auto& [row, step] : steps) {
    const std::string title =
        fmt::format("One {} of {}.", analysis::step_in_parts(result), report::short_name(row->name));
    section.add(timeline_chart(step, id_of("timeline", *row), title, length_s));
  }
  if (section.pieces.empty())
    section.add(report::Paragraph{fmt::format("The file has no {} of the baseline.", analysis::step_in_parts(result))});
  return section;
}

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
    std::string text = escaped_markup(notice.text);
    if (!notice.section.empty()) text = fmt::format(R"(<a href="#{}">{}</a>)", escaped_markup(notice.section), text);
    out += "<p class=\"notice\">" + text + "</p>\n";
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

report::Document make_report(const store::Result& result, const analysis::Findings& findings) {
  report::Document document;
  document.title = result.name.empty() ? "harness report" : result.name;
  document.subtitle = fmt::format("{} on {}, backend {}, {}", report::subject_of(result), plural(result.ranks, "rank"),
                                  result.backend, result.created);
  document.headline = report::headline(result, findings.summary);
  report::add_diagnosis(findings, document);
  if (!config::traits_of(result.backend).caveat.empty()) document.notices.push_back({report::backend_line(result)});
  if (const std::size_t n = findings.summary.warnings.size(); n > 0)
    document.notices.push_back({fmt::format("Warnings to read before you believe this: {}.", n), "warnings"});
  const auto add = [&](report::Section section) {
    if (!section.pieces.empty()) document.sections.push_back(std::move(section));
  };
  const bool measured = !findings.summary.predicted;  // a prediction has no machine to describe
  if (findings.cost) add(report::cost_section(*findings.cost));
  report::Section bandwidth{"bandwidth-section", "Bandwidth", {}};
  bandwidth.add(bandwidth_chart(result, findings.summary));
  add(std::move(bandwidth));
  add(changes_section(result, findings));
  add(scaling_section(result, findings));
  add(losses_section(result, findings));
  add(report::explanation_section(result, findings));
  add(timeline_section(result, findings));
  if (measured) {
    report::Section late = report::stragglers_section(result, findings);
    if (const std::vector<double>& shares = findings.stragglers.late_share; !shares.empty())
      late.add(late_ranks_chart(result, shares));
    add(std::move(late));
  }
  add(report::nccl_section(result));
  add(report::environment_section(result, findings));
  add(report::warnings_section(findings));
  add(report::configuration_section(result));
  document.footer = fmt::format("Made by harness {} from run {}. This file needs nothing else: no script, no network.",
                                result.tool_version, result.run_uuid);
  return document;
}

}  // namespace harness::page
