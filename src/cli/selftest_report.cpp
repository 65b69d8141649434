#include "cli/selftest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/clean_text.h"
#include "report/table.h"

namespace harness::cli {
namespace {

constexpr std::size_t max_shown_failures = 8;  // of one line; the rest is counted

using Json = nlohmann::ordered_json;

Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}
std::string dump(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string check_table(const std::vector<selftest::CheckLine>& lines) {
  report::Table table;
  table.columns = {{"check", true}, {"cases"}, {"worst error"}, {"allowed"}, {"verdict", true}};
  struct Note {  // said once, however many lines have it
    std::string text, check;
    int others;
  };
  std::vector<Note> notes;
  std::string below;
  for (const selftest::CheckLine& l : lines) {
    const bool measured = l.tolerance > 0 && l.cases > 0 && l.outcome != selftest::Outcome::not_run;
    table.rows.push_back({l.check, l.cases > 0 ? std::to_string(l.cases) : "",
                          measured ? fmt::format("{:.1e}", l.error) : "",
                          measured ? fmt::format("{:.0e}", l.tolerance) : "", selftest::name_of(l.outcome)});
    for (std::size_t i = 0; i < l.failures.size() && i < max_shown_failures; ++i) {
      below += report::wrapped("FAILED " + l.check + ": " + report::one_line(l.failures[i]), 118, 2);
    }
    if (l.failures.size() > max_shown_failures) {
      below += fmt::format("FAILED {}: and {} more\n", l.check, l.failures.size() - max_shown_failures);
    }
    for (const std::string& note : l.notes) {
      const auto it = std::ranges::find(notes, note, &Note::text);
      if (it == notes.end()) {
        notes.push_back({note, l.check, 0});
      } else {
        ++it->others;
      }
    }
  }
  for (const Note& n : notes) {
    const std::string others = n.others > 0 ? fmt::format(" and {} more", n.others) : "";
    below += report::wrapped(fmt::format("note: {} ({}{})", report::one_line(n.text), n.check, others), 118, 2);
  }
  return table.text() + (below.empty() ? "" : "\n" + below);
}

std::string check_sentence(const selftest::CheckLine& l) {
  std::string text = fmt::format("{}: {}", l.check, selftest::name_of(l.outcome));
  if (l.outcome != selftest::Outcome::not_run && l.tolerance > 0) {
    text += fmt::format(" ({} cases, worst error {:.1e} of {:.0e})", l.cases, l.error, l.tolerance);
  }
  if (!l.failures.empty()) text += ": " + report::one_line(l.failures.front());
  return text + "\n";
}

std::string check_json_lines(const std::vector<selftest::CheckLine>& lines) {
  std::string text;
  for (const selftest::CheckLine& l : lines) {
    text += dump({{"check", l.check},
                  {"cases", l.cases},
                  {"error", number(l.error)},
                  {"tolerance", l.tolerance},
                  {"verdict", selftest::name_of(l.outcome)},
                  {"failures", l.failures},
                  {"notes", l.notes}},
                 -1);
  }
  return text;
}

}  // namespace harness::cli
