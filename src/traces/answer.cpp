#include "traces/answer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/units.h"

namespace harness::traces {
namespace {

constexpr std::size_t screen_columns = 80;
constexpr double least_shown = 0.0005;  // smaller values round to 0.0 % of the step

std::string steps_text(const TracedGpu& gpu) {
  const Steps& steps = gpu.steps;
  if (steps.windows.empty()) return "none found: all figures are of the whole trace";
  const auto length_s = [&](std::size_t i) { return steps.windows[i].seconds(); };
  std::string text = plural(std::ssize(steps.alike), "step");
  const auto [shortest, longest] = std::ranges::minmax_element(steps.alike, {}, length_s);
  if (steps.alike.size() > 1) text += fmt::format(", {} to {}", ms(length_s(*shortest)), ms(length_s(*longest)));
  text += ", by " + steps.how;
  const std::size_t without = steps.windows.size() - steps.alike.size() + (steps.without_last ? 1 : 0);
  if (without > 0) text += fmt::format("; {} left out: the first, the last, or unlike these", without);
  if (steps.no_optimizer) text += "; most have no optimizer";
  return text;
}

// Returns the causes of idle time, largest first.
std::vector<std::string> causes_of(const IdleTimes& idle_s) {
  std::vector<std::pair<double, std::size_t>> causes;
  for (std::size_t i = 0; i < cause_count; ++i) {
    if (static_cast<Cause>(i) != Cause::loading) causes.emplace_back(idle_s.of_cause[i], i);
  }
  std::ranges::sort(causes, std::greater());
  std::vector<std::string> texts;
  for (const auto& [seconds, cause] : causes) {
    if (seconds > 0) texts.push_back(fmt::format("{} {}", title_of(static_cast<Cause>(cause)), ms(seconds)));
  }
  return texts;
}

std::vector<std::string> details_of(Part part, const TimedStep& step) {
  const analysis::Breakdown& b = step.breakdown;
  if (part == Part::idle) return causes_of(step.idle_s);
  std::vector<std::string> texts;
  if (part == Part::other_compute) {
    for (const auto& [kind, seconds] : b.other_compute) texts.push_back(fmt::format("{} {}", kind, ms(seconds)));
  }
  if (!is_exposed_communication(part)) return texts;
  if (const double hidden_s = b.hidden_s(part); hidden_s > 0) texts.push_back(ms(hidden_s) + " more hidden");
  std::vector<analysis::KindTime> kinds = b.kinds;
  std::ranges::stable_sort(kinds, std::greater(), &analysis::KindTime::owns_s);
  for (const analysis::KindTime& kind : kinds) {
    if (kind.group == key_of(part) && kind.owns_s > 0)
      texts.push_back(fmt::format("{} {}", kind.kind, ms(kind.owns_s)));
  }
  return texts;
}

std::string shares_text(const Report& report) {
  const analysis::Breakdown& b = report.mean.breakdown;
  const auto share = [&](double seconds) { return percent(b.step_s > 0 ? seconds / b.step_s : 0, 0); };
  std::string text =
      fmt::format("computation {}, exposed communication {}", share(b.parts.computation()), share(b.parts.exposed()));
  if (b[Part::waiting] || b[Part::bubble])
    text += fmt::format(", waiting {}", share(b[Part::waiting].value_or(0) + b[Part::bubble].value_or(0)));
  return text + fmt::format(", idle {}", share(b[Part::idle].value_or(0) + b[Part::loading].value_or(0)));
}

std::string capture_text(const Report& report) {
  const TracedGpu& first = report.gpus.front();
  std::string text = fmt::format("{}{}{}", first.format, first.version.empty() ? "" : " ", first.version.substr(0, 8));
  const std::string_view gpu = first.gpu;
  if (!gpu.empty())
    text += ", " + short_name(std::string(gpu.substr(gpu.starts_with("NVIDIA ") ? sizeof("NVIDIA") : 0)), 24);
  const std::string all = first.world ? fmt::format(" of {}", *first.world) : "";
  if (report.gpus.size() == 1 && first.rank) text += fmt::format(", rank {}{}", *first.rank, all);
  if (report.gpus.size() > 1) text += fmt::format(", {}{} GPUs", report.gpus.size(), all);
  return text;
}

// Formats a row for one or several parts; details that do not fit in one line are left out.
std::string row_text(double seconds, double step_s, const std::vector<std::string>& details) {
  const std::string amount = fmt::format("{}, {}", ms(seconds), percent(step_s > 0 ? seconds / step_s : 0));
  const std::size_t columns = screen_columns - amount.size() - 28;
  std::string fit;
  for (const std::string& detail : details) {
    if (fit.size() + detail.size() + 2 > columns) break;
    fit += (fit.empty() ? "" : ", ") + detail;
  }
  return fit.empty() ? amount : amount + "; " + fit;
}

// Adds one row for each of the largest parts and one for the rest.
void add_parts(const Report& report, evidence::Answer& answer) {
  constexpr std::size_t most_parts = 4;
  const analysis::Breakdown& b = report.mean.breakdown;
  std::vector<std::pair<double, Part>> parts;  // largest first
  for (const Part part : all_parts) {
    if (b[part] && *b[part] >= least_shown * b.step_s && *b[part] > 0) parts.emplace_back(*b[part], part);
  }
  std::ranges::stable_sort(parts, std::greater(), &std::pair<double, Part>::first);
  double rest_s = report.mean.copies_s;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [seconds, part] = parts[i];
    if (i < most_parts) {
      answer.tell(part == Part::waiting ? "waiting for others" : name_of(part),
                  row_text(seconds, b.step_s, details_of(part, report.mean)));
    } else {
      rest_s += seconds;
      rest.push_back(fmt::format("{} {}", name_of(part), ms(seconds)));
    }
  }
  if (report.mean.copies_s > 0) rest.push_back("copies " + ms(report.mean.copies_s));
  if (rest.empty() || rest_s < least_shown * b.step_s) return;
  answer.tell("the rest", row_text(rest_s, b.step_s, rest));
}

struct Change {
  std::string name;
  double before_s = 0, after_s = 0;
  double by_s() const { return after_s - before_s; }
};

// Changes by name; largest_first() sorts them by absolute size.
using Changes = std::map<std::string, Change>;
std::vector<Change> largest_first(const Changes& changes) {
  std::vector<Change> all;
  for (const auto& [name, change] : changes) all.push_back({name, change.before_s, change.after_s});
  std::ranges::stable_sort(all, std::greater(), [](const Change& c) { return std::abs(c.by_s()); });
  return all;
}

std::string text_of(const Change& change) {
  return fmt::format("{}: {} to {}", change.name, ms(change.before_s), ms(change.after_s));
}

Part part_of(Class kernel_class) {
  const std::string_view name = class_names()[kernel_class];
  if (name == "matrix_products") return Part::matrix_products;
  return name == "attention" ? Part::attention : Part::other_compute;
}

// "nvjet_tst_192x192" of "void nvjet_tst_192x192<float>(…)".
std::string brief(const std::string& kernel) {
  const std::string name = kernel.starts_with("void ") ? kernel.substr(5) : kernel;
  return short_name(name.substr(0, std::min(name.find('<'), name.find('('))), 32);
}

// Describes kernels of one part that are new, gone or take a different time.
std::string kernel_text(Part part, const Report& before, const Report& after) {
  Changes changes;
  for (const Report* report : {&before, &after}) {
    double Change::*const side = report == &before ? &Change::before_s : &Change::after_s;
    for (const TracedGpu& gpu : report->gpus) {
      for (const NamedKernel& kernel : gpu.kernels) {
        if (!is_communication(kernel.kernel_class) && part_of(kernel.kernel_class) == part)
          changes[kernel.name].*side += kernel.seconds / static_cast<double>(report->gpus.size());
      }
    }
  }
  const std::vector<Change> all = largest_first(changes);
  if (all.empty()) return "";
  const auto gone = std::ranges::find_if(all, [](const Change& c) { return c.after_s == 0; });
  const auto come = std::ranges::find_if(all, [](const Change& c) { return c.before_s == 0; });
  const double most_s = std::abs(all.front().by_s());
  if (gone != all.end() && come != all.end() && std::min(gone->before_s, come->after_s) > 0.2 * most_s) {
    const std::string from = brief(gone->name), to = brief(come->name);
    return fmt::format("{} ({}) became {} ({})", from, ms(gone->before_s), from == to ? "another of that name" : to,
                       ms(come->after_s));
  }
  return text_of({brief(all.front().name), all.front().before_s, all.front().after_s});
}

std::string detail_of(Part part, const Report& before, const Report& after) {
  if (is_computation(part)) return kernel_text(part, before, after);
  Changes changes;
  for (const Report* report : {&before, &after}) {
    double Change::*const side = report == &before ? &Change::before_s : &Change::after_s;
    for (std::size_t i = 0; part == Part::idle && i < cause_count; ++i)
      changes[std::string(title_of(static_cast<Cause>(i)))].*side += report->mean.idle_s.of_cause[i];
    for (const analysis::KindTime& kind : report->mean.breakdown.kinds) {
      if (kind.group == key_of(part)) changes[kind.kind].*side += kind.owns_s;
    }
  }
  const std::vector<Change> all = largest_first(changes);
  return all.empty() ? "" : text_of(all.front());
}

}  // namespace

evidence::Answer answer_of(const std::vector<Report>& reports) {
  const Report& report = reports.back();
  const TracedGpu& first = report.gpus.front();
  evidence::Answer answer;
  answer.object = "trace";
  answer.kind = "profiler trace";
  for (const Report& each : reports) answer.files.insert(answer.files.end(), each.files.begin(), each.files.end());
  answer.facts = {{"step_time_s", report.mean.breakdown.step_s}, {"gpus", std::ssize(report.gpus)}};
  const std::string what = first.steps.windows.empty() ? "trace" : "step";
  const std::string seconds = ms(report.mean.breakdown.step_s);
  if (reports.size() == 1) {
    answer.headline = first.steps.no_optimizer
                          ? fmt::format("the kernels repeat every {}: {}", seconds, shares_text(report))
                          : fmt::format("{} of {}: {}", what, seconds, shares_text(report));
    answer.tell("trace", capture_text(report));
    answer.tell("steps", steps_text(first));
    add_parts(report, answer);
  } else {
    const double before_s = reports.front().mean.breakdown.step_s, after_s = report.mean.breakdown.step_s;
    answer.headline = fmt::format("{} of {} before, {} after: {}", what, ms(before_s), seconds,
                                  before_s > 0 ? signed_percent(after_s / before_s - 1) : "");
    answer.evidence = differences_of(reports.front(), report);
  }
  answer.refused = report.refused;
  answer.problems = problems_of(report);
  answer.notes = notes_of(report);
  return answer;
}

std::vector<std::pair<std::string, std::string>> differences_of(const Report& before, const Report& after) {
  struct Row {
    std::optional<Part> part;  // none: copies
    double before_s = 0, after_s = 0;
  };
  std::vector<Row> rows{{std::nullopt, before.mean.copies_s, after.mean.copies_s}};
  for (const Part part : all_parts)
    rows.push_back({part, before.mean.breakdown[part].value_or(0), after.mean.breakdown[part].value_or(0)});
  std::ranges::stable_sort(rows, std::greater(), [](const Row& r) { return std::abs(r.after_s - r.before_s); });
  constexpr std::size_t most = 4;
  constexpr double least_share = 0.01;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const Row& row : rows) {
    const double by_s = row.after_s - row.before_s;
    if (texts.size() >= most || std::abs(by_s) < least_share * before.mean.breakdown.step_s) break;
    std::string text = fmt::format("{} ms: {} to {}", signed_number(1e3 * by_s, 2), ms(row.before_s), ms(row.after_s));
    const std::string detail = row.part ? detail_of(*row.part, before, after) : "";
    if (!detail.empty()) text += "; " + detail;
    texts.emplace_back(row.part ? name_of(*row.part) : "copies", text);
  }
  if (texts.empty()) texts.emplace_back("difference", "no part changed by more than 1 % of the step");
  return texts;
}

}  // namespace harness::traces
