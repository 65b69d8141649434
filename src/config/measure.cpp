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
  const auto memory = [&m](std::string_view text) {
    const std::int64_t bytes = parse_bytes(text);
    if (bytes == 0) fail("found {}; allowed: a size above 0, such as 2 GiB", quote(text));
    m.memory_limit_bytes = static_cast<double>(bytes);
  };
  const auto interval = [&m](std::string_view text) { m.interval = parse_choice(text, intervals); };
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
  const auto deadlines = [&](const YamlNode& value, const std::string& path) {
    const std::array<Field, 2> fields{{{.key = "start", .parse = positive_seconds(m.deadlines.start_s)},
                                       {.key = "step", .parse = positive_seconds(m.deadlines.step_s)}}};
    read_map(problems, value, path, fields);
  };
  const std::array<Field, 13> fields{{{.key = "rounds", .parse = whole(m.rounds, 1, max_rounds)},
                                      {.key = "until", .parse = until},
                                      {.key = "looks", .parse = {}, .read = looks},
                                      {.key = "weight", .parse = {}, .read = weight},
                                      {.key = "warmup_steps", .parse = whole(m.warmup_steps, 0, max_steps - 1)},
                                      {.key = "steps", .parse = steps},
                                      {.key = "seed", .parse = seed},
                                      {.key = "smallest_effect", .parse = effect},
                                      {.key = "interval", .parse = interval},
                                      {.key = "deadlines", .parse = {}, .read = deadlines},
                                      {.key = "time_budget", .parse = positive_seconds(m.time_budget_s)},
                                      {.key = "memory_limit", .parse = memory},
                                      {.key = "share_gpus", .parse = share_gpus}}};
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
