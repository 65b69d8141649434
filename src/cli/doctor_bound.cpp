#include "cli/doctor_bound.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/option_value.h"
#include "cli/view.h"
#include "report/document.h"

namespace harness::cli {
namespace {

// What is asked for, against what is possible.
enum class Answer : std::uint8_t { none, possible, with_sharp, impossible };

struct Question {
  double bytes = 0, within_s = 0;
};

Answer answer_to(const Question& question, const doctor::Bound& bound) {
  if (question.within_s == 0) return Answer::none;
  if (question.within_s < bound.with_sharp_s) return Answer::impossible;
  return question.within_s < bound.seconds ? Answer::with_sharp : Answer::possible;
}

// As people write sizes of messages: 14 GB.
std::string size_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.4g} GB", bytes / 1e9) : show_bytes(bytes);
}

std::string headline_of(const Question& question, const doctor::Fabric& fabric, const doctor::Bound& bound) {
  std::string text =
      fmt::format("An all-reduce of {} over {} on {} takes at least {}", size_text(question.bytes),
                  plural(fabric.ranks, "rank"), plural(fabric.nodes(), "node"), show_seconds(bound.seconds));
  if (bound.with_sharp_s < bound.seconds)
    text += fmt::format(", and {} where the network's switches add up (SHARP)", show_seconds(bound.with_sharp_s));
  if (bound.predicted_s > 0) text += fmt::format("; {} are predicted", show_seconds(bound.predicted_s));
  text += ".";
  const std::string asked = show_seconds(question.within_s);
  switch (answer_to(question, bound)) {
    case Answer::none:
      return text;
    case Answer::possible:
      return fmt::format("{} Within {}: possible, as far as these limits go.", text, asked);
    case Answer::with_sharp:
      return fmt::format("{} Within {}: possible with SHARP alone.", text, asked);
    case Answer::impossible:
      break;
  }
  return fmt::format("{} Within {}: impossible; it would need {} times these rates.", text, asked,
                     fmt::format("{:.3g}", bound.with_sharp_s / question.within_s));
}

report::Document document_of(const Question& question, const doctor::Fabric& fabric, const doctor::Bound& bound) {
  report::Document document;
  document.headline = headline_of(question, fabric, bound);
  report::Table table{{{"what limits it", true}, {"least time"}, {"formula", true}}, {}};
  for (const doctor::LeastTime& limit : bound.limits)
    table.rows.push_back({limit.what, show_seconds(limit.seconds), limit.formula});
  if (fabric.nodes() > 1)
    table.rows.push_back({"with SHARP", show_seconds(bound.with_sharp_s), "the network carries size once, not twice"});
  if (bound.predicted_s > 0) {
    const double size = question.bytes / 1e9, on_a_link = 2 * (fabric.ranks - 1.0) / fabric.ranks * size;
    table.rows.push_back({"predicted", show_seconds(bound.predicted_s),
                          fmt::format("no limit: what `backend: sim` predicts of NCCL, algorithm bandwidth {:.3g} GB/s",
                                      size / bound.predicted_s)});
    table.rows.push_back(
        {"predicted, ring", show_seconds(bound.ring_s),
         fmt::format("the same with nccl_algo: Ring, bus bandwidth {:.3g} GB/s", on_a_link / bound.ring_s)});
  }
  report::Section limits{"limits", "", {}};
  limits.add(report::Numbers{"", std::move(table)});
  limits.add(report::List{fabric.sources, report::List::Mark::none});
  limits.add(report::Paragraph{
      "Assumed: all links at their full rate in one direction, and nothing else on them. The limits are those of any "
      "algorithm (Patarasuk and Yuan 2009; docs/method.md, \"The limit\"), so measured times are longer. size is what "
      "each rank gives; bus bandwidth is 2 (n - 1) / n x size / time, algorithm bandwidth size / time."});
  document.sections.push_back(std::move(limits));
  return document;
}

std::string json_of(const Question& question, const doctor::Fabric& fabric, const doctor::Bound& bound) {
  using Json = nlohmann::ordered_json;
  Json limits = Json::array();
  for (const doctor::LeastTime& limit : bound.limits)
    limits.push_back({{"what", limit.what}, {"seconds", limit.seconds}, {"formula", limit.formula}});
  const Answer answer = answer_to(question, bound);
  const Json within = answer == Answer::none ? Json() : Json(question.within_s);
  const Json possible = answer == Answer::none ? Json() : Json(answer != Answer::impossible);
  const Json whole{{"schema", "harness-doctor-allreduce"},
                   {"schema_version", 1},
                   {"bytes", question.bytes},
                   {"ranks", fabric.ranks},
                   {"nodes", fabric.nodes()},
                   {"least_s", bound.seconds},
                   {"least_with_sharp_s", bound.with_sharp_s},
                   {"predicted_s", bound.predicted_s > 0 ? Json(bound.predicted_s) : Json()},
                   {"ring_s", bound.ring_s > 0 ? Json(bound.ring_s) : Json()},
                   {"within_s", within},
                   {"possible", possible},
                   {"limits", std::move(limits)},
                   {"sources", fabric.sources}};
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A number alone, which a configuration takes for bytes or seconds, is no size or time that anybody asks for here.
bool has_no_unit(const std::string& text) try {
  parse_real(text);
  return true;
} catch (const Error&) {
  return false;
}

template <class Parse>
double above_zero(const char* option, const std::string& text, Parse parse, const char* example) {
  const auto value = static_cast<double>(option_value(option, text, parse));
  if (value <= 0) fail("{}: found {}; it must be above 0, such as {}", option, quote(text), example);
  if (has_no_unit(text))
    fail("{}: found {}, which has no unit; expected one, such as {}", option, quote(text), example);
  return value;
}

Question question_of(const DoctorOptions& options) {
  Question question{above_zero("--allreduce", options.allreduce, parse_bytes, "14GB"), 0};
  if (!options.within.empty()) question.within_s = above_zero("--within", options.within, parse_seconds, "2ms");
  return question;
}

}  // namespace

void check_allreduce(const DoctorOptions& options) {
  static_cast<void>(question_of(options));
}

int doctor_allreduce(const doctor::Fabric& fabric, const DoctorOptions& options, std::ostream& out) {
  const Question question = question_of(options);
  const doctor::Bound bound = doctor::bound_of_all_reduce(question.bytes, fabric);
  if (options.format == "json") {
    out << json_of(question, fabric, bound);
  } else if (options.format == "md") {
    out << report::write_markdown(document_of(question, fabric, bound));
  } else {
    out << view(document_of(question, fabric, bound), under_a_launcher, out);
  }
  constexpr int impossible = 2;
  return answer_to(question, bound) == Answer::impossible ? impossible : 0;
}

}  // namespace harness::cli
