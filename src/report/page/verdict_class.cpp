#include "report/page/verdict_class.h"

namespace harness::page {

std::string verdict_class(const analysis::CaseSummary& row) {
  if (row.role == store::CaseRole::baseline) return "v-baseline";
  if (!row.effect || row.blocks == 0) return "v-none";
  switch (row.effect->verdict) {
    case analysis::Verdict::faster:
      return "v-faster";
    case analysis::Verdict::slower:
      return "v-slower";
    case analysis::Verdict::same:
      return "v-same";
    case analysis::Verdict::unresolved:
      return "v-unresolved";
    case analysis::Verdict::not_honoured:
    case analysis::Verdict::none:
      break;
  }
  return "v-none";
}

}  // namespace harness::page
