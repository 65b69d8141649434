#include <array>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/sections.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Interval>, 2> intervals{{{"level", Interval::level}, {"pairs", Interval::pairs}}};
constexpr int max_rounds = 10000;
constexpr int max_steps = 4096;  // of a block, with its warm-up: as many losses as a worker keeps

std::function<void(std::string_view)> positive_seconds(double& into) {
  return [&into](std::string_view text) {
    const double seconds = parse_seconds(text);
    if (!(seconds > 0)) fail("found {}; allowed: a time above 0, such as 30 s", quote(text));
    into = seconds;
  };
}

std::function<void(std::string_view)> whole(int& into, int low, int high) {
  return [&into, low, high](std::string_view text) { into = static_cast<int>(parse_within(text, low, high)); };
}

}  // namespace

const char* name_of(Interval interval) {
  return word_of(interval, intervals);
}

Measure read_measure(const YamlNode& node, const std::string& key, Problems& problems) {
  Measure m;
  const auto seed = [&m](std::string_view text) {
    m.seed = static_cast<std::uint64_t>(parse_within(text, 0, std::numeric_limits<std::int64_t>::max()));
  };
  const auto effect = [&m](std::string_view text) {
    const double share = parse_share(text);
    if (!(share > 0 && share < 1)) {
      fail("found {}, which is {:g} %; allowed: above 0 % and below 100 %, such as 1 %", quote(text), share * 100);
    }
    m.smallest_effect = share;
  };
  const auto memory = [&m](std::string_view text) {
    const std::int64_t bytes = parse_bytes(text);
    if (bytes == 0) fail("found {}; allowed: a size above 0, such as 2 GiB", quote(text));
    m.memory_limit_bytes = static_cast<double>(bytes);
  };
  const auto interval = [&m](std::string_view text) { m.interval = parse_choice(text, intervals); };
  const auto share_gpus = [&m](std::string_view text) { m.share_gpus = parse_bool(text); };
  const auto deadlines = [&](const YamlNode& value, const std::string& path) {
    const std::array<Field, 2> fields{{{.key = "start", .parse = positive_seconds(m.deadlines.start_s)},
                                       {.key = "step", .parse = positive_seconds(m.deadlines.step_s)}}};
    read_map(problems, value, path, fields);
  };
  const std::array<Field, 10> fields{{{.key = "rounds", .parse = whole(m.rounds, 1, max_rounds)},
                                      {.key = "warmup_steps", .parse = whole(m.warmup_steps, 0, max_steps - 1)},
                                      {.key = "steps", .parse = whole(m.steps, 1, max_steps)},
                                      {.key = "seed", .parse = seed},
                                      {.key = "smallest_effect", .parse = effect},
                                      {.key = "interval", .parse = interval},
                                      {.key = "deadlines", .parse = {}, .read = deadlines},
                                      {.key = "time_budget", .parse = positive_seconds(m.time_budget_s)},
                                      {.key = "memory_limit", .parse = memory},
                                      {.key = "share_gpus", .parse = share_gpus}}};
  if (read_map(problems, node, key, fields) && m.warmup_steps + m.steps > max_steps) {
    const YamlNode* at = node.find("steps") != nullptr ? node.find("steps") : node.find("warmup_steps");
    problems.add(
        at->place, dotted(key, at->key),
        fmt::format("{} warm-up steps and {} steps exceed the maximum of {} per block; use more rounds instead",
                    m.warmup_steps, m.steps, max_steps));
  }
  return m;
}

}  // namespace harness::config
