#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/json.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

using Json = evidence::Value;
using report::json_list;

constexpr std::size_t longest_kernel = 80;

double rounded_ms(double seconds) {
  return std::round(seconds * 1e7) / 1e4;
}

Json figures_json(const Figures& f) {
  std::string top;
  for (const NamedKernel& kernel : f.top)
    top += fmt::format("{}{} = {:.4f}", top.empty() ? "" : "; ",
                       short_name(replaced(kernel.name, {{';', ","}}), longest_kernel), 1e3 * kernel.seconds);
  return {{"window", f.window},
          {"step_ms", rounded_ms(f.step_s)},
          {"busy_ms", rounded_ms(f.busy_s)},
          {"compute_ms", rounded_ms(f.compute_s)},
          {"communication_ms", rounded_ms(f.communication_s)},
          {"exposed_communication_ms", rounded_ms(f.exposed_communication_s)},
          {"overlap_percent", f.communication_s > 1e-12 ? Json(100 * f.overlapped_s / f.communication_s) : Json()},
          {"memcpy_ms", rounded_ms(f.memcpy_s)},
          {"exposed_memory_ms", rounded_ms(f.exposed_memory_s)},
          {"idle_ms", rounded_ms(f.idle_s)},
          {"kernels", f.kernels},
          {"collectives", f.collectives},
          {"unclassified_percent", f.unclassified ? Json(100 * *f.unclassified) : Json()},
          {"top5", top}};
}

Json idle_json(const IdleTimes& idle_s) {
  Json json = Json::object();
  for (std::size_t i = 0; i < cause_count; ++i)
    json[fmt::format("idle_{}_ms", key_of(static_cast<Cause>(i)))] = rounded_ms(idle_s.of_cause[i]);
  return json;
}

Json step_json(const TimedStep& step) {
  Json json{{"step_ms", rounded_ms(step.breakdown.step_s)}};
  for (const Part part : all_parts) {
    if (step.breakdown[part]) json[fmt::format("{}_ms", key_of(part))] = rounded_ms(*step.breakdown[part]);
  }
  if (step.copies_s > 0) json["copies_ms"] = rounded_ms(step.copies_s);
  for (const auto& [kind, seconds] : step.breakdown.other_compute) json["other_kinds"][kind] = rounded_ms(seconds);
  json.update(idle_json(step.idle_s));
  return json;
}

Json gpu_json(const TracedGpu& gpu) {
  const auto known = [](const auto& number) { return number ? Json(*number) : Json(); };
  const auto step = [](const Window& window) -> Json {
    return {{"name", short_name(window.name)}, {"step_ms", rounded_ms(window.seconds())}};
  };
  const auto kernel = [](const NamedKernel& k) -> Json {
    return {{"name", short_name(k.name)}, {"ms", rounded_ms(k.seconds)}};
  };
  Json json{{"file", gpu.file}, {"device", gpu.label},  {"rank", known(gpu.rank)}, {"world", known(gpu.world)},
            {"gpu", gpu.gpu},   {"format", gpu.format}, {"version", gpu.version}};
  json["windows"] = json_list(gpu.windows, figures_json);
  json["idle"] = idle_json(gpu.idle_s);
  json["steps"] = json_list(gpu.steps.windows, step);
  json["steps_by"] = gpu.steps.how;
  json["step"] = short_name(gpu.shown.name);
  json["parts"] = step_json(gpu.step);
  if (gpu.waiting_at_least_s) json["waiting_at_least_ms"] = rounded_ms(*gpu.waiting_at_least_s);
  json["unclassified"] = json_list(gpu.unclassified, kernel);
  return json;
}

Json waiting_json(const Report& report) {
  const auto number_of = [&](std::size_t gpu) {
    return report.gpus[gpu].rank.value_or(static_cast<std::int64_t>(gpu));
  };
  Json all = Json::array();
  constexpr std::size_t most = 10'000;
  for (std::size_t i = 0; i < std::min(most, report.meetings.all.size()); ++i) {
    const Meeting& m = report.meetings.all[i];
    all.push_back(
        {{"index", i},
         {"kind", class_names()[m.kernel_class]},
         {"ranks", json_list(m.members, [&](const auto& member) { return number_of(member.rank); })},
         {"transfer_ms", rounded_ms(m.transfer_s)},
         {"longest_ms", rounded_ms(m.longest_s)},
         {"waiting_ms_by_rank", json_list(m.members, [](const auto& member) { return rounded_ms(member.waiting_s); })},
         {"end_spread_us", std::round(m.end_spread_s * 1e7) / 10},
         {"last_rank", number_of(m.last)}});
  }
  return all;
}

Json report_json(const Report& report) {
  const auto late = [&](const LateRank& rank) -> Json {
    return {{"rank", report.gpus[rank.gpu].name()},
            {"last", rank.last},
            {"of", rank.of},
            {"own_percent", 100 * rank.own_share},
            {"compute_percent", 100 * rank.compute_share}};
  };
  const auto bandwidth = [](const Bandwidth& b) -> Json {
    return {{"kind", class_names()[b.kernel_class]},
            {"bytes", b.bytes},
            {"ranks", b.ranks},
            {"count", b.count},
            {"busbw_gb_per_s", b.bytes_per_s / 1e9}};
  };
  return {{"traces", json_list(report.gpus, gpu_json)},
          {"mean", step_json(report.mean)},
          {"waiting", waiting_json(report)},
          {"late", json_list(report.late, late)},
          {"bandwidths", json_list(report.bandwidths, bandwidth)},
          {"problems", problems_of(report)},
          {"notes", notes_of(report)}};
}

}  // namespace

Json json_of(const std::vector<Report>& reports) {
  Json json = report_json(reports.back());
  if (reports.size() > 1) json["before"] = report_json(reports.front());
  return json;
}

}  // namespace harness::traces
