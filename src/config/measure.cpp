#include <algorithm>
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
constexpr std::array<Choice<Timelines>, 2> timelines{{{"roles", Timelines::roles}, {"all", Timelines::all}}};
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

// After the fifth round and then at half as many again: 5, 8, 12, 18, 27, 40, …
std::vector<int> usual_looks(int rounds) {
  std::vector<int> looks;
  for (int next = 5; next < rounds; next = (3 * next + 1) / 2) looks.push_back(next);
  looks.push_back(rounds);
  return looks;
}

// Of a sweep that goes on for long, for people.
std::vector<int> first_looks() {
  std::vector<int> looks = usual_looks(max_rounds);
  looks.resize(4);
  return looks;
}

std::vector<int> read_looks(const YamlNode& node, const std::string& key, Problems& problems) {
  std::vector<int> looks;
  if (node.kind != YamlNode::Kind::sequence) {
    problems.add(node.place, key,
                 fmt::format("found {}; expected a list of rounds, such as [5, 8, 12]", describe(node)));
    return looks;
  }
  for (const YamlNode& child : node.children) {
    const auto text = scalar_of(problems, child, key, "a number of rounds, such as 5");
    if (!text) continue;
    parse_or_report(problems, child.place, key, *text, [&](std::string_view word) {
      const int least = looks.empty() ? 2 : looks.back() + 1;
      looks.push_back(static_cast<int>(parse_within(word, least, max_rounds)));
    });
  }
  return looks;
}

std::vector<std::pair<std::string, double>> read_weights(const YamlNode& node, const std::string& key,
                                                         Problems& problems) {
  std::vector<std::pair<std::string, double>> weights;
  std::vector<Field> fields;
  for (const std::string& variable : variable_names()) {
    fields.push_back({.key = variable, .parse = [&weights, variable](std::string_view text) {
                        const double share = parse_share(text);
                        if (!(share > 0 && share <= 1))
                          fail("found {}; allowed: a share of the rounds above 0 and up to 1, such as 0.25",
                               quote(text));
                        weights.emplace_back(variable, share);
                      }});
  }
  read_map(problems, node, key, fields);
  return weights;
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
  const auto confidence = [&m](std::string_view text) {
    m.confidence = parse_share(text);
    if (!(m.confidence >= 0.5 && m.confidence < 1)) {
      fail("found {}; allowed: 50 % up to less than 100 %, such as 95 %", quote(text));
    }
  };
  const auto memory = [&m](std::string_view text) {
    const std::int64_t bytes = parse_bytes(text);
    if (bytes == 0) fail("found {}; allowed: a size above 0, such as 2 GiB", quote(text));
    m.memory_limit_bytes = static_cast<double>(bytes);
  };
  const auto interval = [&m](std::string_view text) { m.interval = parse_choice(text, intervals); };
  const auto timeline = [&m](std::string_view text) { m.timeline = parse_choice(text, timelines); };
  const auto share_gpus = [&m](std::string_view text) { m.share_gpus = parse_bool(text); };
  // Without `rounds`, a sweep that ends when all is settled may go on for long; one that does not has 12.
  constexpr int rounds_to_settle = 40;
  bool until_settled = false;
  const auto until = [&](std::string_view text) {
    constexpr std::array<Choice<bool>, 2> ends{{{"rounds", false}, {"settled", true}}};
    until_settled = parse_choice(text, ends);
    if (until_settled && node.find("rounds") == nullptr) m.rounds = rounds_to_settle;
  };
  const auto steps = [&m](std::string_view text) {
    m.auto_steps = text == "auto";
    if (!m.auto_steps) m.steps = static_cast<int>(parse_within(text, 1, max_steps));
  };
  const auto looks = [&](const YamlNode& value, const std::string& path) {
    m.looks = read_looks(value, path, problems);
  };
  const auto weight = [&](const YamlNode& value, const std::string& path) {
    m.weights = read_weights(value, path, problems);
  };
  const std::string duration = "a time such as 30 s or 10 min";
  const auto deadlines = [&](const YamlNode& value, const std::string& path) {
    const std::array<Field, 2> fields{{{.key = "start",
                                        .parse = positive_seconds(m.deadlines.start_s),
                                        .help = "from a worker's start until it is ready",
                                        .allowed = duration,
                                        .fallback = fmt::format("{} s", Deadlines().start_s)},
                                       {.key = "step",
                                        .parse = positive_seconds(m.deadlines.step_s),
                                        .help = "for each step",
                                        .allowed = duration,
                                        .fallback = fmt::format("{} s", Deadlines().step_s)}}};
    read_map(problems, value, path, fields);
  };
  const Measure usual;
  const std::array<Field, 15> fields{
      {{.key = "rounds",
        .parse = whole(m.rounds, 1, max_rounds),
        .help = "blocks per case; with until: settled, at most",
        .allowed = fmt::format("1 to {}", max_rounds),
        .fallback = fmt::format("{}; {}", usual.rounds, rounds_to_settle)},
       {.key = "until",
        .parse = until,
        .help = "rounds, or settled: a case leaves when its verdict is settled",
        .allowed = "rounds, settled",
        .fallback = "rounds"},
       {.key = "looks",
        .parse = {},
        .read = looks,
        .help = "until: settled: the rounds after which verdicts are taken",
        .allowed = "a list such as [5, 8, 12]",
        .fallback = fmt::format("{}, …", fmt::join(first_looks(), ", ")),
        .takes = Takes::list},
       {.key = "weight",
        .parse = {},
        .read = weight,
        .help = "by variable: the share of the rounds that its cases take part in",
        .allowed = "a share above 0 and up to 1, such as 0.25",
        .fallback = "1"},
       {.key = "warmup_steps",
        .parse = whole(m.warmup_steps, 0, max_steps - 1),
        .help = "untimed steps of a block",
        .allowed = fmt::format("0 to {}", max_steps - 1),
        .fallback = fmt::format("{}", usual.warmup_steps)},
       {.key = "steps",
        .parse = steps,
        .help = "timed steps of a block; auto: a little less than set-up takes",
        .allowed = fmt::format("auto, or 1 to {}", max_steps),
        .fallback = fmt::format("{}", usual.steps)},
       {.key = "smallest_effect",
        .parse = effect,
        .help = "changes below it do not matter to you",
        .allowed = "a share such as 1 %",
        .fallback = fmt::format("{} %", usual.smallest_effect * 100)},
       {.key = "confidence",
        .parse = confidence,
        .help = "of all intervals of the sweep together",
        .allowed = "50 % up to less than 100 %",
        .fallback = fmt::format("{} %", usual.confidence * 100)},
       {.key = "interval",
        .parse = interval,
        .help = "verdicts rest on level (of the machine) or pairs (in rounds)",
        .allowed = "level, pairs",
        .fallback = name_of(usual.interval)},
       {.key = "seed",
        .parse = seed,
        .help = "of weights, tokens and the order of blocks",
        .allowed = "a whole number from 0",
        .fallback = fmt::format("{}", usual.seed)},
       {.key = "deadlines",
        .parse = {},
        .read = deadlines,
        .help = "start of a worker, each step",
        .fallback = fmt::format("{} s, {} s", usual.deadlines.start_s, usual.deadlines.step_s)},
       {.key = "time_budget",
        .parse = positive_seconds(m.time_budget_s),
        .help = "fewer rounds, decided before the first result; ends settled",
        .allowed = duration,
        .fallback = "none"},
       {.key = "memory_limit",
        .parse = memory,
        .help = "per worker",
        .allowed = "a size such as 2 GiB",
        .fallback = "its share of the node"},
       {.key = "timeline",
        .parse = timeline,
        .help = "ranks whose profiled step is kept: one per role, or all",
        .allowed = "roles, all",
        .fallback = "roles"},
       {.key = "share_gpus",
        .parse = share_gpus,
        .help = "allows several ranks per GPU, for tests only",
        .allowed = "true, false",
        .fallback = "false"}}};
  const bool is_map = read_map(problems, node, key, fields);
  if (const YamlNode* given = is_map ? node.find("looks") : nullptr; given != nullptr && !until_settled) {
    problems.add(given->key_place, dotted(key, "looks"), "looks need `until: settled`; add it, or remove them");
  }
  if (until_settled && m.looks.empty()) m.looks = usual_looks(m.rounds);
  if (until_settled) {  // --rounds may be fewer than the file's looks reach
    std::erase_if(m.looks, [&](int look) { return look >= m.rounds; });
    m.looks.push_back(m.rounds);
  }
  if (is_map && m.warmup_steps + m.steps > max_steps) {
    const YamlNode* at = node.find("steps") != nullptr ? node.find("steps") : node.find("warmup_steps");
    problems.add(
        at->place, dotted(key, at->key),
        fmt::format("{} warm-up steps and {} steps exceed the maximum of {} per block; use more rounds instead",
                    m.warmup_steps, m.steps, max_steps));
  }
  return m;
}

}  // namespace harness::config
