#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/experiment.h"
#include "config/fields.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Timelines>, 2> timelines{{{"roles", Timelines::roles}, {"all", Timelines::all}}};
constexpr int max_rounds = 10000;
constexpr int max_steps = 4096;  // of a block, with warm-up: as many losses as a worker keeps

// Returns 5, then 1.5 times the previous look, rounded up: 5, 8, 12, 18, 27, 41, … below `rounds`, and `rounds` itself.
std::vector<int> looks_of(int rounds) {
  std::vector<int> looks;
  for (int next = 5; next < rounds; next = (3 * next + 1) / 2) looks.push_back(next);
  looks.push_back(rounds);
  return looks;
}

constexpr std::array<Choice<bool>, 2> ends{{{"rounds", false}, {"settled", true}}};
// The default of `rounds` with `until: settled`, which may take many; without it the default is 12.
constexpr int rounds_to_settle = 40;
constexpr double most_usual_start_s = 600;

// Checks keys that depend on each other, and sets `looks`.
void check_measure(const YamlNode& node, const std::string& key, Measure& m, Problems& problems) {
  const YamlNode *until = node.find("until"), *steps = node.find("steps");
  if (until != nullptr && until->scalar == word_of(true, ends)) {
    if (node.find("rounds") == nullptr) m.rounds = rounds_to_settle;
    m.looks = looks_of(m.rounds);
  }
  if (m.warmup_steps + m.steps > max_steps) {
    const YamlNode* at = steps != nullptr ? steps : node.find("warmup_steps");
    problems.add(
        at->place, dotted(key, at->key),
        fmt::format("{} warm-up steps and {} steps exceed the maximum of {} per block; use more rounds instead",
                    m.warmup_steps, m.steps, max_steps));
  }
}

}  // namespace

double usual_start_s(BackendKind backend, int ranks) {
  const double alone_s = Deadlines{}.start_s;
  return traits_of(backend).ranks_are_gpus ? std::min(alone_s + ranks, most_usual_start_s) : alone_s;
}

Field measure_field(Measure& m, Problems& problems) {
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
  const auto confidence = number_into(
      m.confidence, parse_share, [](double share) { return share >= 0.5 && share < 1; },
      "50 % up to less than 100 %, such as 95 %");
  const auto until = [](std::string_view text) { parse_choice(text, ends); };
  const auto steps = [&m](std::string_view text) {
    m.auto_steps = text == "auto";
    if (!m.auto_steps) m.steps = static_cast<int>(parse_within(text, 1, max_steps));
  };
  const auto check = [&](const YamlNode& node, const std::string& key) { check_measure(node, key, m, problems); };
  const Measure usual;
  const std::string duration = "a time such as 30 s or 10 min";
  const auto start = [&m, seconds = seconds_into(m.deadlines.start_s)](std::string_view text) {
    seconds(text);
    m.usual_start = false;
  };
  const std::string usual_start = fmt::format("{} s; on GPUs a second more for each rank, up to {} min",
                                              usual.deadlines.start_s, most_usual_start_s / 60);
  const std::vector<Field> fields{
      Field::scalar("rounds", whole_into(m.rounds, 1, max_rounds), "blocks per case; with until: settled, at most",
                    fmt::format("1 to {}", max_rounds), fmt::format("{}; {}", usual.rounds, rounds_to_settle)),
      Field::choice("until", until, "rounds, or settled: a case leaves when its verdict is settled", words_of(ends),
                    "rounds"),
      Field::scalar("warmup_steps", whole_into(m.warmup_steps, 0, max_steps - 1), "untimed steps of a block",
                    fmt::format("0 to {}", max_steps - 1), std::to_string(usual.warmup_steps)),
      Field::scalar("steps", steps, "timed steps of a block; auto: a little less than set-up takes",
                    fmt::format("auto, or 1 to {}", max_steps), std::to_string(usual.steps))
          .or_words({"auto"}),
      Field::scalar("smallest_effect", effect, "changes within it do not matter: 10 % is -9.09 to +10 %",
                    "a share such as 1 %", fmt::format("{} %", usual.smallest_effect * 100)),
      Field::scalar("confidence", confidence, "of all intervals of the sweep together", "50 % up to less than 100 %",
                    fmt::format("{} %", usual.confidence * 100)),
      Field::scalar("seed", seed, "of weights, tokens and the order of blocks", "a whole number from 0",
                    std::to_string(usual.seed)),
      Field::section(
          "deadlines",
          {Field::scalar("start", start, "from a worker's start until it is ready", duration, usual_start),
           Field::scalar("step", seconds_into(m.deadlines.step_s), "for each step", duration,
                         fmt::format("{} s", usual.deadlines.step_s))},
          "start of a worker, each step", "",
          fmt::format("{} s (GPUs: 1 s more a rank), {} s", usual.deadlines.start_s, usual.deadlines.step_s)),
      Field::scalar("time_budget", seconds_into(m.time_budget_s),
                    "fewer rounds, decided before the first result; ends settled", duration, "none"),
      Field::scalar("memory_limit", bytes_into(m.memory_limit_bytes), "per worker", "a size such as 2 GiB",
                    "its share of the node"),
      Field::choice("timeline", m.timeline, timelines, "ranks whose profiled step is kept: one per role, or all"),
      Field::truth("share_gpus", m.share_gpus, "allows several ranks per GPU, for tests only"),
  };
  return Field::section("measure", fields, "how to measure", "", "", check);
}

}  // namespace harness::config
