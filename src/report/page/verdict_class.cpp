#include "report/page/verdict_class.h"

namespace harness::html {

std::string verdict_class(const CaseSummary& row) {
  if (row.role == CaseRole::baseline) return "v-baseline";
  if (!row.effect || row.blocks == 0) return "v-none";
  switch (row.effect->verdict) {
    case Verdict::faster:
      return "v-faster";
    case Verdict::slower:
      return "v-slower";
    case Verdict::same:
      return "v-same";
    case Verdict::unresolved:
      return "v-unresolved";
    case Verdict::not_honoured:
    case Verdict::none:
      break;
  }
  return "v-none";
}

}  // namespace harness::html
