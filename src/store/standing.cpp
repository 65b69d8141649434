#include "store/standing.h"

#include "base/error.h"
#include "store/claim.h"

namespace harness::store {
namespace {

std::string last_sign(const Owner& owner, const std::optional<Beat>& beat) {
  if (!beat) return "";
  return fmt::format("last sign of life {} by the owner's clock ({})", beat->time, owner.host);
}

}  // namespace

std::string standing_of(const Imprint& imprint) {
  if (!imprint.owner) return "unfinished";
  switch (process_of(*imprint.owner)) {
    case Process::runs:
      return "running: " + describe(*imprint.owner);
    case Process::gone:
      return "killed: " + describe(*imprint.owner);
    case Process::unknown:
      break;
  }
  const std::string last = last_sign(*imprint.owner, imprint.beat);
  return last.empty() ? "unfinished" : "unfinished, " + last;
}

std::string preparation_of(const std::string& path) {
  const auto claims = claims_on(path);
  if (claims.empty()) return "";
  const auto sign = look_at_claim(claims.back().second)();
  if (!sign || !sign->owner) return "; a sweep has just begun to prepare it";
  const std::string who = describe(*sign->owner);
  switch (process_of(*sign->owner)) {
    case Process::runs:
      return " yet; in preparation: " + who;
    case Process::gone:
      return "; killed in preparation: " + who;
    case Process::unknown:
      break;
  }
  return fmt::format("; in preparation: {}; {}", who,
                     last_sign(*sign->owner, parse_beat(std::string_view(sign->text).substr(0, beat_bytes))));
}

}  // namespace harness::store
