#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "report/page/page.h"
#include "report/words.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

using page::OperationKind;

struct Look {
  const char* swatch;
  OperationKind kind;
};
// Indexed by Part.
constexpr std::array<Look, part_count> looks{{{"k-matmul", OperationKind::matrix_product},
                                              {"k-attention", OperationKind::attention},
                                              {"k-compute", OperationKind::other_computation},
                                              {"k-compute", OperationKind::other_computation},
                                              {"k-tensor", OperationKind::tensor},
                                              {"k-pipeline", OperationKind::pipeline},
                                              {"k-data", OperationKind::data},
                                              {"k-data", OperationKind::data},
                                              {"k-world", OperationKind::closing},
                                              {"k-everyone", OperationKind::everyone},
                                              {"k-waiting", OperationKind::waiting},
                                              {"k-waiting", OperationKind::waiting},
                                              {"w-other", OperationKind::other_computation},
                                              {"w-other", OperationKind::other_computation}}};

std::string time_text(const report::Scale& scale, double seconds) {
  return scale.print(seconds) + " " + scale.unit;
}

// Draws the parts of the mean step end to end, so that they end where the step does.
report::Figure parts_chart(const Report& report) {
  const analysis::Breakdown& b = report.mean.breakdown;
  const report::Scale scale = report::scale_of_seconds(std::array{b.step_s});
  report::Figure figure;
  figure.id = "parts";
  figure.title = "Where the step goes.";
  figure.caption = fmt::format(
      "Every moment of the step belongs to one part{}. Communication counts where nothing was computed meanwhile; what "
      "computation hid stands in the table.",
      report.gpus.size() > 1 ? ", means over the GPUs" : "");
  figure.numbers.columns = {{"part", true}, {"time " + scale.unit}, {"share of the step"}, {"hidden " + scale.unit}};
  page::RowChart chart;
  chart.kind = "compact";
  chart.axis = page::round_axis(0, b.step_s / scale.factor, 5, [](double at) { return fmt::format("{:g}", at); });
  chart.axis_title = "time, " + scale.unit;
  double from_s = 0;
  const auto add = [&](const std::string& name, const char* swatch, double seconds, double hidden_s) {
    const auto at = [&](double s) { return chart.axis.at(s / scale.factor); };
    page::Svg svg;
    svg.rectangle("bar", at(from_s), at(from_s + seconds), -7, 7);
    chart.rows.push_back({name, percent(seconds / b.step_s), svg, swatch, time_text(scale, seconds)});
    figure.numbers.rows.push_back(
        {name, scale.print(seconds), percent(seconds / b.step_s), hidden_s > 0 ? scale.print(hidden_s) : ""});
    from_s += seconds;
  };
  for (const Part part : all_parts) {
    if (b[part] && *b[part] > 0)
      add(part == Part::waiting ? "waiting for other ranks" : name_of(part), looks[index_of(part)].swatch, *b[part],
          is_exposed_communication(part) ? b.hidden_s(part) : 0);
  }
  if (report.mean.copies_s > 0) add("copies", "w-other", report.mean.copies_s, 0);
  chart.draw(figure, fmt::format("{} of {}; all numbers are in the table below.",
                                 plural(std::ssize(chart.rows), "part"), time_text(scale, b.step_s)));
  return figure;
}

// Returns how much later a GPU's shown step began than the first GPU's, by the first GPU's clock. Returns nothing if
// they are not the same step.
std::optional<double> begun_after_s(const Report& report, std::size_t i) {
  if (i == 0) return 0.0;
  if (i >= report.meetings.clock_s.size() || report.meetings.all.empty()) return std::nullopt;
  const auto begun_ns = [&](std::size_t gpu) { return report.gpus[gpu].shown.start_ns; };
  const double after_s = static_cast<double>(begun_ns(i) - begun_ns(0)) * 1e-9 - report.meetings.clock_s[i];
  if (std::abs(after_s) > report.mean.breakdown.step_s / 2) return std::nullopt;
  return after_s;
}

report::Figure timeline(const Report& report) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    if (!report.gpus[i].work.operations.empty()) shown.push_back(i);
  }
  bool one_clock = true;
  double first_s = 0;
  for (const std::size_t i : shown) {
    const std::optional<double> after_s = begun_after_s(report, i);
    one_clock = one_clock && after_s;
    first_s = std::min(first_s, after_s.value_or(0));
  }
  std::vector<page::DrawnOperation> operations;
  double length_s = 0;
  for (const std::size_t i : shown) {
    const TracedGpu& gpu = report.gpus[i];
    const double begun_s = one_clock ? *begun_after_s(report, i) - first_s : 0;
    for (const analysis::StepOperation& x : gpu.work.operations) {
      std::string track = x.main ? "compute" : "other streams";
      if (x.part && is_exposed_communication(*x.part)) track = name_of(*x.part);
      OperationKind kind = x.part ? looks[index_of(*x.part)].kind : OperationKind::copy;
      if (x.kind.starts_with("adam") || x.kind == "optimizer") kind = OperationKind::optimizer;
      double waited_s = std::isfinite(x.waiting_s) ? x.waiting_s : 0;
      if (x.bubble_s > 0) waited_s += x.bubble_s;
      operations.push_back({gpu.rank.value_or(static_cast<std::int64_t>(i)), track, kind, begun_s + x.start_s,
                            begun_s + x.end_s, waited_s});
      length_s = std::max(length_s, begun_s + x.end_s);
    }
  }
  report::Figure figure =
      page::lanes_chart(operations, report.mean.breakdown.step_s, length_s, "timeline", "The step of median length.");
  std::string words =
      "A lane is what one GPU did: computation on its main stream, work on other streams, and communication.";
  if (report.gpus.size() > shown.size())
    words += fmt::format(" {} of {} GPUs are drawn, from the first to the last.", shown.size(), report.gpus.size());
  if (shown.size() > 1)
    words += one_clock ? " The GPUs share a clock: their collectives end together."
                       : " Each GPU counts from the start of its own step.";
  figure.caption = words + " " + figure.caption;
  return figure;
}

double time_idle(const analysis::Breakdown& b) {
  return b[Part::idle].value_or(0) + b[Part::loading].value_or(0);
}

double time_of_its_own(const TimedStep& step) {
  return step.breakdown.parts.computation() + time_idle(step.breakdown) + step.copies_s;
}

// Shows each GPU's own work in its step and its waiting for others. Waiting that computation hides counts in both, so
// that their sum may exceed the step.
report::Figure ranks_chart(const Report& report) {
  double longest_s = 0;
  for (const TracedGpu& gpu : report.gpus)
    longest_s = std::max({longest_s, gpu.step.breakdown.step_s, time_of_its_own(gpu.step) + gpu.step.waits_s});
  const report::Scale scale = report::scale_of_seconds(std::array{longest_s});
  report::Figure figure;
  figure.id = "ranks";
  figure.title = "Own work and waiting, by rank.";
  figure.caption =
      "First the bar of what a GPU did or was idle itself, then that of what it waited for in communication. A rank "
      "that works longer than the others and waits least is the one that they wait for.";
  figure.legend = {{"k-compute", "its own time"}, {"k-waiting", "waiting in communication"}};
  figure.numbers.columns = {{"rank", true},
                            {"step " + scale.unit},
                            {"computation " + scale.unit},
                            {"idle " + scale.unit},
                            {"waiting " + scale.unit},
                            {"came last"},
                            {"of"}};
  page::RowChart chart;
  chart.kind = "compact";
  chart.axis = page::round_axis(0, longest_s / scale.factor, 5, [](double at) { return fmt::format("{:g}", at); });
  chart.axis_title = "time, " + scale.unit;
  constexpr std::size_t most = 64;
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    const TracedGpu& gpu = report.gpus[i];
    const analysis::Breakdown& b = gpu.step.breakdown;
    const double own_s = time_of_its_own(gpu.step);
    const auto late = std::ranges::find(report.late, i, &LateRank::gpu);
    const bool is_late = late != report.late.end();
    figure.numbers.rows.push_back({gpu.name(), scale.print(b.step_s), scale.print(b.parts.computation()),
                                   scale.print(time_idle(b)), scale.print(gpu.step.waits_s),
                                   is_late ? std::to_string(late->last) : "", is_late ? std::to_string(late->of) : ""});
    if (chart.rows.size() == most) continue;
    const auto at = [&](double s) { return chart.axis.at(s / scale.factor); };
    page::Svg svg;
    svg.rectangle("bar k-compute", at(0), at(own_s), -7, 7);
    svg.rectangle("bar k-waiting", at(own_s), at(own_s + gpu.step.waits_s), -7, 7);
    chart.rows.push_back({gpu.name(), time_text(scale, own_s), svg, "",
                          is_late ? fmt::format("last in {} of {} collectives", late->last, late->of) : ""});
  }
  if (report.gpus.size() > most) figure.caption += fmt::format(" The first {} ranks are drawn.", most);
  chart.draw(figure, plural(std::ssize(chart.rows), "rank") + "; all numbers are in the table below.");
  return figure;
}

report::Numbers kernels_table(const TracedGpu& gpu) {
  report::Numbers numbers{fmt::format("The longest kernels in the step of {}", gpu.name()), {}, true};
  numbers.table.columns = {{"kernel", true}, {"class", true}, {"number"}, {"time ms"}, {"share of the step"}};
  constexpr std::size_t most = 30;
  for (std::size_t i = 0; i < std::min(most, gpu.kernels.size()); ++i) {
    const NamedKernel& k = gpu.kernels[i];
    numbers.table.rows.push_back({short_name(k.name), std::string(title_of(k.kernel_class)), std::to_string(k.count),
                                  fmt::format("{:.3f}", 1e3 * k.seconds),
                                  percent(k.seconds / gpu.step.breakdown.step_s)});
  }
  return numbers;
}

report::Numbers collectives_table(const Report& report) {
  report::Numbers numbers{"Bus bandwidth of collectives, from the transfer alone, without waiting", {}, false};
  numbers.table.columns = {{"collective", true}, {"bytes"}, {"ranks"}, {"number"}, {"busbw GB/s"}, {"transfers ms"}};
  for (const Bandwidth& b : report.bandwidths)
    numbers.table.rows.push_back({std::string(title_of(b.kernel_class)), show_bytes(static_cast<double>(b.bytes)),
                                  std::to_string(b.ranks), std::to_string(b.count),
                                  fmt::format("{:.1f}", b.bytes_per_s / 1e9), fmt::format("{:.2f}", 1e3 * b.seconds)});
  return numbers;
}

report::Numbers differences_table(const evidence::Answer& answer) {
  report::Numbers numbers;
  numbers.table.columns = {{"part", true}, {"difference", true}};
  for (const auto& [label, text] : answer.evidence) numbers.table.rows.push_back({label, text});
  return numbers;
}

}  // namespace

report::Document make_report(const std::vector<Report>& reports) {
  const Report& report = reports.back();
  const evidence::Answer answer = answer_of(reports);
  const TracedGpu& first = report.gpus.front();
  report::Document document;
  document.title = "A training step, from its trace";
  std::vector<std::string> names;
  for (const std::string& file : answer.files) names.push_back(std::filesystem::path(file).filename().string());
  document.subtitle = fmt::format("{}: {}{}, {}", join_first(names, 3), first.format,
                                  first.gpu.empty() ? "" : ", " + first.gpu, plural(std::ssize(report.gpus), "GPU"));
  document.headline = answer.headline;
  for (const std::string& problem : answer.problems) document.notices.push_back({problem});
  const auto section = [&](const char* id, const char* title) -> report::Section& {
    return document.sections.emplace_back(report::Section{id, title, {}});
  };
  if (reports.size() > 1) section("differences", "Before and after").add(differences_table(answer));
  if (report.mean.breakdown.step_s > 0) {
    section("step", "Where the time goes").add(parts_chart(report));
    section("lanes", "Timeline").add(timeline(report));
  }
  if (report.gpus.size() > 1) section("late", "Ranks").add(ranks_chart(report));
  report::Section& work = section("work", "Collectives and kernels");
  if (!report.bandwidths.empty()) work.add(collectives_table(report));
  work.add(kernels_table(first));
  report::List notes{answer.notes};
  notes.items.insert(notes.items.end(), report.refused.begin(), report.refused.end());
  if (!notes.items.empty()) section("notes", "How to read the figures").add(std::move(notes));
  document.footer = "Made by harness from a profiler's trace. This file needs nothing else: no script, no network.";
  return document;
}

}  // namespace harness::traces
