#include "report/show.h"

#include <fmt/format.h>

#include "report/case_table.h"
#include "report/cost_lines.h"
#include "report/formats.h"
#include "report/words.h"

namespace harness {

std::string show_text(const Result& result, const Summary& summary) {
  constexpr std::size_t width = 120;
  std::string out = wrapped(headline(result, summary), width, 0) + "\n";
  for (const auto& paragraph : context(result, summary)) out += wrapped(paragraph, width, 2);
  const CaseTable rows = case_table(result, summary);
  if (!rows.table.rows.empty()) out += "\n" + rows.table.text();
  if (!rows.notes.empty() || !summary.warnings.empty()) out += "\n";
  for (std::size_t i = 0; i < rows.notes.size(); ++i) {
    out += wrapped(fmt::format("[{}] {}", i + 1, rows.notes[i]), width, 4);
  }
  for (const auto& warning : summary.warnings) out += wrapped("! " + warning, width, 2);
  return out;
}

std::string show_markdown(const Result& result, const Summary& summary) {
  std::string out = fmt::format("**{}**\n\n", headline(result, summary));
  for (const auto& paragraph : context(result, summary)) out += fmt::format("- {}\n", paragraph);
  const CaseTable rows = case_table(result, summary);
  if (!rows.table.rows.empty()) out += "\n" + rows.table.markdown();
  if (!rows.notes.empty()) out += "\n";
  for (std::size_t i = 0; i < rows.notes.size(); ++i)
    out += fmt::format("- \\[{}\\] {}\n", i + 1, one_line(rows.notes[i]));
  if (!summary.warnings.empty()) out += "\n";
  for (const auto& warning : summary.warnings) out += fmt::format("- **Warning:** {}\n", one_line(warning));
  return out;
}

std::string show(const Result& result, const Summary& summary, Format format, const std::optional<CostEstimate>& cost) {
  switch (format) {
    case Format::md:
      return show_markdown(result, summary) + (cost ? cost_markdown(*cost) : "");
    case Format::csv:
      return show_csv(result, summary);
    case Format::json:
      return show_json(result, summary, cost);
    case Format::text:
      break;
  }
  return show_text(result, summary) + (cost ? cost_text(*cost) : "");
}

}  // namespace harness
