#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

using Json = evidence::Value;

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
    json[fmt::format("idle_{}_ms", key_of(static_cast<Cause>(i)))] = rounded_ms(idle_s[i]);
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
  Json json{{"file", gpu.file}, {"device", gpu.label},  {"rank", known(gpu.rank)}, {"world", known(gpu.world)},
            {"gpu", gpu.gpu},   {"format", gpu.format}, {"version", gpu.version}};
  json["windows"] = Json::array();
  for (const Figures& figures : gpu.windows) json["windows"].push_back(figures_json(figures));
  json["idle"] = idle_json(gpu.idle_s);
  json["steps"] = Json::array();
  for (const Window& step : gpu.steps.windows)
    json["steps"].push_back({{"name", short_name(step.name)}, {"step_ms", rounded_ms(step.seconds())}});
  json["steps_by"] = gpu.steps.how;
  json["step"] = short_name(gpu.shown.name);
  json["parts"] = step_json(gpu.step);
  if (gpu.waiting_at_least_s) json["waiting_at_least_ms"] = rounded_ms(*gpu.waiting_at_least_s);
  json["unclassified"] = Json::array();
  for (const NamedKernel& kernel : gpu.unclassified)
    json["unclassified"].push_back({{"name", short_name(kernel.name)}, {"ms", rounded_ms(kernel.seconds)}});
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
    Json ranks = Json::array(), waiting = Json::array();
    for (const Meeting::Member& member : m.members) {
      ranks.push_back(number_of(member.rank));
      waiting.push_back(rounded_ms(member.waiting_s));
    }
    all.push_back({{"index", i},
                   {"kind", class_names()[m.kernel_class]},
                   {"ranks", ranks},
                   {"transfer_ms", rounded_ms(m.transfer_s)},
                   {"longest_ms", rounded_ms(m.longest_s)},
                   {"waiting_ms_by_rank", waiting},
                   {"end_spread_us", std::round(m.end_spread_s * 1e7) / 10},
                   {"last_rank", number_of(m.last)}});
  }
  return all;
}

Json report_json(const Report& report) {
  Json json;
  json["traces"] = Json::array();
  for (const TracedGpu& gpu : report.gpus) json["traces"].push_back(gpu_json(gpu));
  json["mean"] = step_json(report.mean);
  json["waiting"] = waiting_json(report);
  json["late"] = Json::array();
  for (const LateRank& rank : report.late)
    json["late"].push_back({{"rank", report.gpus[rank.gpu].name()},
                            {"last", rank.last},
                            {"of", rank.of},
                            {"own_percent", 100 * rank.own_share},
                            {"compute_percent", 100 * rank.compute_share}});
  json["bandwidths"] = Json::array();
  for (const Bandwidth& b : report.bandwidths)
    json["bandwidths"].push_back({{"kind", class_names()[b.kernel_class]},
                                  {"bytes", b.bytes},
                                  {"ranks", b.ranks},
                                  {"count", b.count},
                                  {"busbw_gb_per_s", b.bytes_per_s / 1e9}});
  json["problems"] = problems_of(report);
  json["notes"] = notes_of(report);
  return json;
}

}  // namespace

Json json_of(const std::vector<Report>& reports) {
  Json json = report_json(reports.back());
  if (reports.size() > 1) json["before"] = report_json(reports.front());
  return json;
}

}  // namespace harness::traces
