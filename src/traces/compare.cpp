#include "traces/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/units.h"

namespace harness::traces {
namespace {

struct Change {
  std::string name;
  double before_s = 0, after_s = 0;
  double by_s() const { return after_s - before_s; }
};

// By name, the largest first.
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

// Kernels of one part that are new, that are gone, or that take another time.
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
      changes[std::string(title_of(static_cast<Cause>(i)))].*side += report->mean.idle_s[i];
    for (const analysis::KindTime& kind : report->mean.breakdown.kinds) {
      if (kind.group == key_of(part)) changes[kind.kind].*side += kind.owns_s;
    }
  }
  const std::vector<Change> all = largest_first(changes);
  return all.empty() ? "" : text_of(all.front());
}

}  // namespace

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
