#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "explain/explain.h"
#include "report/json.h"
#include "report/words.h"
#include "store/result_file.h"

namespace harness::cli {
namespace {

using explain::CaseMoved;
using explain::Upgrade;

constexpr std::string_view hardware_key = "hardware=";

// Throws Error where more is asked for than a result can answer.
std::string hardware_of(const PlanOptions& options) {
  constexpr const char* usage = "use plan FILE.h5 --hardware NAME, where NAME is a file of configs/hardware such as p5";
  std::string hardware;
  for (const std::string& text : options.overrides) {
    if (!text.starts_with(hardware_key)) fail("{} cannot change what was measured; {}", quote(text), usage);
    hardware = text.substr(hardware_key.size());
  }
  if (hardware.empty()) fail("{} is a result: it says what ran, not what would; {}", quote(options.config), usage);
  const bool of_a_plan = options.ranks > 0 || options.ranks_per_node > 0 || options.best > 0 || options.gpu_hours ||
                         !options.assume_mfu.empty() || !options.budget.empty();
  if (of_a_plan) fail("of a result, `plan` answers what its steps take elsewhere and nothing else; {}", usage);
  return hardware;
}

std::string mfu_text(const std::optional<double>& mfu) {
  return mfu ? percent(*mfu) : "";
}

const char* subject_of(const Upgrade& upgrade) {
  return upgrade.of_prediction ? "predicted" : "measured";
}

// The notes that cases point to go to `notes`, each once.
report::Table cases_table(const Upgrade& upgrade, const store::Result& result, std::vector<std::string>& notes) {
  report::Table table;
  table.columns = {{"case", true}, {subject_of(upgrade)}, {"MFU"},         {"forecast"},
                   {"MFU"},        {"speed-up"},          {"as predicted"}};
  const auto mark = [&](const std::string& note) {
    const auto known = std::ranges::find(notes, note);
    const auto number = known - notes.begin() + 1;
    if (known == notes.end()) notes.push_back(note);
    return fmt::format(" [{}]", number);
  };
  for (const CaseMoved& c : upgrade.cases) {
    const std::string name = report::short_name(result.at(c).name);
    if (!c.why_none.empty()) {
      table.rows.push_back({name + mark(c.why_none), "", "", "?", "", "", ""});
      continue;
    }
    std::string marks = c.too_large.empty() ? "" : mark(c.too_large);
    if (c.network < 1)
      marks += mark(
          fmt::format("The network between nodes is taken to have {} of its rate, there as here", percent(c.network)));
    table.rows.push_back({name + marks, show_seconds(c.measured_s), mfu_text(c.measured_mfu),
                          show_seconds(c.forecast_s), mfu_text(c.forecast_mfu),
                          fmt::format("{:.2f}", c.measured_s / c.forecast_s), show_seconds(c.healthy_s)});
  }
  return table;
}

report::Document document_of(const Upgrade& upgrade, const store::Result& result) {
  report::Document document;
  document.headline = fmt::format("{}: {} on {}; predicted, not measured: the same steps on {} (calibration {})",
                                  result.name, subject_of(upgrade), upgrade.from, upgrade.to, upgrade.calibration);
  report::Section section{"upgrade", "", {}};
  std::vector<std::string> notes;
  section.add(report::Numbers{"", cases_table(upgrade, result, notes)});
  section.add(report::List{std::move(notes), report::List::Mark::number});
  section.add(report::List{
      {fmt::format("forecast: the prediction for {}, with each kind of operation as much slower than predicted as it "
                   "was.",
                   upgrade.to),
       fmt::format("as predicted: what {} is predicted to take, all being well.", upgrade.to),
       "What host and disk take stays; waiting for slower ranks grows and shrinks with computation."},
      report::List::Mark::none});
  std::vector<const sim::Trust*> trusts;
  for (const CaseMoved& c : upgrade.cases)
    if (c.why_none.empty()) trusts.push_back(&c.trust);
  add_trust(trusts, 0, section);
  document.sections.push_back(std::move(section));
  return document;
}

using Json = report::Json;

Json json_of(const CaseMoved& c, const store::Result& result) {
  Json out{{"name", result.at(c).name}};
  if (!c.why_none.empty()) {
    out["no_forecast"] = c.why_none;
    return out;
  }
  out.update({{"step_seconds", c.measured_s},
              {"predicted_step_seconds", c.forecast_s},
              {"speed_up", c.measured_s / c.forecast_s},
              {"as_predicted_step_seconds", c.healthy_s}});
  if (c.measured_mfu) out["mfu"] = *c.measured_mfu;
  if (c.forecast_mfu) out["predicted_mfu"] = *c.forecast_mfu;
  if (c.network < 1) out["network_share"] = c.network;
  if (!c.too_large.empty()) out["too_large"] = c.too_large;
  put_trust(c.trust, true, out);
  return out;
}

std::string json_text(const Upgrade& upgrade, const store::Result& result) {
  Json out{{"schema", "harness-plan-upgrade"},
           {"schema_version", 2},
           {"name", result.name},
           {"backend", result.backend},
           {"ranks", result.ranks},
           {"calibration", upgrade.calibration},
           {"from", upgrade.from},
           {"hardware", upgrade.to}};
  Json& cases = out["cases"] = Json::array();
  for (const CaseMoved& c : upgrade.cases) cases.push_back(json_of(c, result));
  return report::json_text(out);
}

}  // namespace

int plan_upgrade(const PlanOptions& options, std::ostream& out) {
  const std::string hardware = hardware_of(options);
  const store::Result result = store::read_result(options.config);
  Upgrade upgrade;
  try {
    const auto name_of = [](const store::ResultCase& of) { return of.name; };
    upgrade = explain::move_to(result, hardware, full_names(options.only, result.cases, name_of));
  } catch (const Error& why) {
    fail("{}: {}", options.config, why.what());
  }
  if (upgrade.cases.empty()) fail("--only {}: no case of this name has a profiled step", join(options.only, ", "));
  if (options.format == "json") {
    out << json_text(upgrade, result);
  } else {
    print(document_of(upgrade, result), options.format, options.view, out);
  }
  return 0;
}

}  // namespace harness::cli
