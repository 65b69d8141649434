#include "config/jitter.h"

#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/sections.h"

namespace harness::config {

Field jitter_field(Jitter& jitter) {
  const auto deviation = [&jitter](std::string_view text) {
    jitter.per_operation = parse_share(text);
    if (!(jitter.per_operation >= 0 && jitter.per_operation <= 1))
      fail("found {}; allowed: a share from 0 % to 100 %", quote(text));
  };
  const auto seed = [&jitter](std::string_view text) {
    jitter.seed = static_cast<std::uint64_t>(parse_within(text, 0, std::numeric_limits<std::int64_t>::max()));
  };
  return Field::section("jitter",
                        {Field::scalar("per_operation", deviation, "by how much what one operation takes varies",
                                       "a share such as 3 %", "0 %"),
                         Field::scalar("seed", seed, "of what is drawn", "a whole number from 0", "1")},
                        "of predictions: every operation of every rank takes a little more or less", "", "none");
}

}  // namespace harness::config
