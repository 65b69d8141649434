#include "report/html/effect_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/words.h"

namespace harness::html {
namespace {

std::string bound(double share) {
  constexpr double most = 10, least = -0.9;
  if (share > most) return "over " + signed_percent(most, 0);
  if (share < least) return "under " + signed_percent(least, 0);
  return signed_percent(share);
}

}  // namespace

std::string change_of(const CaseSummary& one) {
  return one.effect && std::isfinite(one.effect->ratio) ? signed_percent(one.effect->ratio - 1) : "";
}

std::string interval_of(const CaseSummary& one) {
  if (!one.effect || !std::isfinite(one.effect->low)) return "";
  return fmt::format("[{}, {}]", bound(one.effect->low - 1), bound(one.effect->high - 1));
}

std::string verdict_of(const CaseSummary& one) {
  return name_of(one.judgement);
}

std::string kind_of(const CaseSummary& one) {
  if (one.role == CaseRole::baseline) return "v-baseline";
  if (!one.effect || one.blocks == 0) return "v-none";
  switch (one.effect->verdict) {
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
