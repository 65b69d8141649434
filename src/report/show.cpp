#include "report/show.h"

#include "base/error.h"
#include "report/sections.h"

namespace harness::report {

std::string write(const Document& document, Format format) {
  switch (format) {
    case Format::text:
      return write_text(document);
    case Format::md:
      return write_markdown(document);
    case Format::csv:
    case Format::json:
      break;
  }
  fail("allowed formats: text, md");
}

Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost) {
  Document document;
  document.headline = headline(result, summary);
  document.sections.push_back(overview_section(result, summary));
  if (Section ladder = ladder_section(result, summary); !ladder.pieces.empty())
    document.sections.push_back(std::move(ladder));
  if (cost) document.sections.push_back(cost_section(*cost));
  return document;
}

std::string show(const store::Result& result, const analysis::Summary& summary, Format format,
                 const std::optional<analysis::CostEstimate>& cost) {
  if (format == Format::csv) return show_csv(result, summary);
  if (format == Format::json) return show_json(result, summary, cost);
  return write(show_document(result, summary, cost), format);
}

Document breakdown_document(const store::Result& result, const analysis::Findings& findings) {
  Document document = show_document(result, findings.summary, findings.cost);
  if (findings.explanation) {
    if (std::string words = diagnosis_words(*findings.explanation); !words.empty())
      document.notices.push_back({std::move(words), explanation_id});
  }
  document.sections.push_back(breakdown_section(result, findings));
  if (Section explained = explanation_section(result, findings); !explained.pieces.empty())
    document.sections.push_back(std::move(explained));
  document.sections.push_back(stragglers_section(result, findings));
  if (Section time = block_time_section(result); !time.pieces.empty()) document.sections.push_back(std::move(time));
  return document;
}

}  // namespace harness::report
