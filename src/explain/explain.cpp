#include "explain/explain.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace harness::explain {
namespace {

// "node 5 (gpu-005)", "one of the nodes 0 to 15", "one of the ranks 5, 13, 21, …"
std::string place_words(const Hypothesis& h, const store::Result& result) {
  const char* what = h.of_node ? "node" : "rank";
  if (h.places.size() > 1) {
    const bool in_a_row = h.places.back() - h.places.front() + 1 == std::ssize(h.places);
    if (in_a_row && h.places.size() > 2)
      return fmt::format("one of the {}s {} to {}", what, h.places.front(), h.places.back());
    constexpr std::size_t most_named = 4;
    std::vector<std::string> names;
    for (const int place : h.places) names.push_back(std::to_string(place));
    return fmt::format("one of the {}s {}", what, join_first(names, most_named));
  }
  const int place = h.places.front();
  const auto is_it = [&](const store::ResultRank& row) { return (h.of_node ? row.node : row.rank) == place; };
  const auto row = std::ranges::find_if(result.rank_table, is_it);
  const std::string host = row == result.rank_table.end() || row->host.empty() ? "" : fmt::format(" ({})", row->host);
  return fmt::format("{} {}{}", what, place, host);
}

struct FaultRow {
  config::Fault fault;
  const char* words;                // {place}: its location; {left}: the remaining share; {rate}: in GB/s
  std::vector<const char*> checks;  // checks of `harness doctor` that detect it, most specific first
};

const FaultRow& row_of(config::Fault fault) {
  using enum config::Fault;
  static const std::vector<FaultRow> rows{
      {slow_gpu,
       "the GPU of {place} computes at {left} of its clock",
       {"load.products", "load.clocks", "gpu.slowed", "gpu.power"}},
      {slow_link,
       "{place} has {left} of its network",
       {"load.pairs", "ib.rate", "ib.state", "nccl.rails", "same.rate", "same.ports", "ib.flaps"}},
      {pcie_downgraded,
       "the PCIe links of {place} carry {left} of what they should",
       {"pcie.width", "pcie.speed", "ib.pcie", "load.host_copies"}},
      {socket_fallback,
       "NCCL sends over TCP, {rate:.2g} GB/s a node",
       {"nccl.network", "nccl.plugin_file", "ib.verbs", "env.devices"}},
      {no_gpudirect,
       "what leaves a node is copied through its memory, without GPUDirect",
       {"nccl.gpu_direct", "gdr.module"}},
      {acs_on, "PCIe's access control sends what leaves a node through the CPU", {"pcie.acs"}},
      {tensor_across_nodes,
       "the ranks are dealt to the nodes one by one, so that neighbours stand on different nodes",
       {}}};
  return *std::ranges::find(rows, fault, &FaultRow::fault);
}

std::string in_words(const Hypothesis& h, const store::Result& result) {
  return fmt::format(fmt::runtime(row_of(h.fault).words),
                     fmt::arg("place", h.places.empty() ? "" : place_words(h, result)),
                     fmt::arg("left", percent(h.left, 0)), fmt::arg("rate", h.faults.socket_bytes_per_s / 1e9));
}

// Shares of the unexplained time, Suspects::unexplained_s().
constexpr double must_explain = 0.25;   // the least that a cause must explain
constexpr double as_good = 0.1;         // causes that differ by less are both named
constexpr double unusual = 0.05;        // handicap of a cause with an unusual share left: the simpler cause is likelier
constexpr double confirmed = 0.2;       // bonus of a cause that doctor has found
constexpr double least_error = 0.03;    // error of predicted steps, if the calibration states less
constexpr double unknown_error = 0.05;  // if it states none: small enough that faults that matter are still named
constexpr std::size_t most_causes = 4;

std::string confirmation(const Hypothesis& h, const store::Result& result) {
  for (const char* check : row_of(h.fault).checks) {
    const auto confirms = [&](const store::ResultFinding& finding) {
      return finding.is_of_nodes() && finding.check == check && (finding.is_failure() || finding.is_warning());
    };
    if (std::ranges::any_of(result.doctor.findings, confirms)) return check;
  }
  return "";
}

struct Judged {
  Hypothesis hypothesis;
  double left_s = 0, score_s = 0, step_s = 0;
  std::string confirmed_by;
};

class Search {
 public:
  Search(const CaseModel& model, const Picture& measured, const store::Result& result)
      : result_(result), suspects_(model, measured) {
    found_.measured_s = measured.step_s;
    found_.healthy_s = suspects_.predicted({}, 1).step_s;
    const config::Experiment& reference = model.reference().experiment;
    // On another cluster, most of the error is what is sought here: links and hosts below their specification.
    const sim::ExpectedErrors errors = sim::expected_errors(*reference.calibration, *reference.hardware);
    found_.error_is_known = errors.tier == sim::Tier::own_cluster;
    found_.margin = found_.error_is_known ? std::max(least_error, errors.step->median) : unknown_error;
  }

  analysis::Diagnosis run() {
    config::Faults known;
    while (found_.causes.size() < most_causes) {
      const std::vector<Judged> judged = judge(known);
      if (judged.empty()) break;
      found_.causes.push_back(cause_of(judged, known));
      known = judged.front().hypothesis.faults;
    }
    found_.compute_factor = suspects_.slowness(known);
    found_.explained_s = suspects_.fitted(known).step_s;
    return found_;
  }

 private:
  // Returns the qualifying causes beyond the known ones, best first.
  std::vector<Judged> judge(const config::Faults& known) {
    const double unexplained_s = suspects_.unexplained_s(known), now_s = suspects_.fitted(known).step_s;
    std::vector<Judged> judged;
    // The step takes as long as predicted: there is nothing to explain.
    if (!(found_.measured_s - now_s > found_.margin * found_.healthy_s)) return judged;
    for (Hypothesis& h : hypotheses(suspects_, known)) {
      Judged j{.hypothesis = std::move(h), .confirmed_by = {}};
      j.left_s = suspects_.unexplained_s(j.hypothesis.faults);
      j.step_s = suspects_.fitted(j.hypothesis.faults).step_s;
      j.confirmed_by = confirmation(j.hypothesis, result_);
      j.score_s =
          j.left_s + unexplained_s * ((j.hypothesis.usual ? 0 : unusual) - (j.confirmed_by.empty() ? 0 : confirmed));
      // A rank's difference from its peers needs no calibration; the speed of a network does.
      const bool among_like = j.hypothesis.fault == config::Fault::slow_gpu;
      const double least_s = found_.margin * (among_like ? found_.healthy_s : now_s);
      if (j.step_s - now_s > least_s && j.left_s < (1 - must_explain) * unexplained_s) judged.push_back(std::move(j));
    }
    std::ranges::stable_sort(judged, {}, &Judged::score_s);
    return judged;
  }

  analysis::Cause cause_of(const std::vector<Judged>& judged, const config::Faults& known) {
    const double unexplained_s = suspects_.unexplained_s(known);
    const Judged& best = judged.front();
    analysis::Cause cause;
    cause.fault = config::name_of(best.hypothesis.fault);
    cause.words = in_words(best.hypothesis, result_);
    cause.confirmed_by = best.confirmed_by;
    cause.with_s = best.step_s;
    cause.explains = 1 - best.left_s / unexplained_s;
    add_check(best.hypothesis.fault, cause);
    for (const Judged& other : std::span(judged).subspan(1)) {
      if (other.score_s > best.score_s + as_good * unexplained_s) continue;
      cause.or_else.push_back({config::name_of(other.hypothesis.fault), in_words(other.hypothesis, result_)});
      add_check(other.hypothesis.fault, cause);
    }
    return cause;
  }

  static void add_check(config::Fault fault, analysis::Cause& cause) {
    if (row_of(fault).checks.empty()) return;
    const std::string check(row_of(fault).checks.front());
    if (std::ranges::find(cause.checks, check) == cause.checks.end()) cause.checks.push_back(check);
  }

  const store::Result& result_;
  Suspects suspects_;
  analysis::Diagnosis found_;
};

// Beyond this, a dozen simulations, of every rank if a fault breaks the symmetry, take minutes.
constexpr std::int32_t most_diagnosed_ranks = 4096;

void diagnose_baseline(const CaseModel& model, const analysis::CaseBreakdown& measured, const store::Result& result,
                       analysis::Explanation& found) {
  found.why_no_diagnosis.clear();
  if (result.ranks > most_diagnosed_ranks) {
    found.why_no_diagnosis = fmt::format("for more than {} ranks it would take minutes", most_diagnosed_ranks);
    return;
  }
  try {
    found.diagnosis = diagnose(model, picture_of(result, measured), result);
    found.diagnosis->case_index = measured.case_index;
  } catch (const Error& why) {
    found.why_no_diagnosis = why.what();
  }
}

void explain_case(const analysis::CaseBreakdown& measured, const store::Result& result, const Reference& reference,
                  analysis::Explanation& found) {
  const bool is_baseline = result.at(measured).role() == store::CaseRole::baseline;
  try {
    const CaseModel model(reference, result, measured.case_index);
    const analysis::CaseBreakdown predicted = analysis::break_down(model.predict({})).front();
    found.cases.push_back(compare_with_prediction(measured.mean, predicted.mean));
    if (is_baseline) diagnose_baseline(model, measured, result, found);
  } catch (const Error& why) {
    found.not_predicted.push_back({measured.case_index, why.what()});
    if (is_baseline) found.why_no_diagnosis = "the baseline has no prediction";
  }
}

}  // namespace

analysis::Diagnosis diagnose(const CaseModel& model, const Picture& measured, const store::Result& result) {
  return Search(model, measured, result).run();
}

analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted) {
  analysis::CaseCompared compared;
  compared.case_index = measured.case_index;
  compared.measured_s = measured.step_s;
  compared.predicted_s = predicted.step_s;
  using Row = analysis::KindCompared;
  const auto add = [&](const analysis::Breakdown& step, double Row::*takes_s, double Row::*owns_s) {
    for (const analysis::KindTime& time : step.kinds) {
      auto row = std::ranges::find_if(compared.kinds, [&](const Row& known) {
        return known.kind == time.kind && known.group == time.group && known.recomputed == time.recomputed;
      });
      if (row == compared.kinds.end()) row = compared.kinds.insert(row, Row{time.kind, time.group, time.recomputed});
      (*row).*takes_s = time.takes_s;
      (*row).*owns_s = time.owns_s;
    }
  };
  add(measured, &Row::measured_takes_s, &Row::measured_owns_s);
  add(predicted, &Row::predicted_takes_s, &Row::predicted_owns_s);
  for (const Part part : all_parts) {
    if (is_computation(part) || is_exposed_communication(part)) continue;
    if (!measured[part] && !predicted[part]) continue;
    compared.parts.push_back({part, measured[part].value_or(0), predicted[part].value_or(0)});
  }
  std::ranges::stable_sort(compared.kinds, std::ranges::greater(), &Row::excess_s);
  std::ranges::stable_sort(compared.parts, std::ranges::greater(), &analysis::PartCompared::excess_s);
  return compared;
}

analysis::Explanation explain(const store::Result& result) {
  analysis::Explanation found;
  found.of_prediction = config::traits_of(result.backend).predicts();
  try {
    const Reference reference = reference_of(result);
    found.hardware = reference.experiment.hardware->name;
    found.calibration = reference.experiment.calibration->name;
    found.why_no_diagnosis = "the baseline has no profiled step";
    for (const analysis::CaseBreakdown& measured : analysis::break_down(result))
      explain_case(measured, result, reference, found);
    if (!found.cases.empty()) return found;
    found.why_none = found.not_predicted.empty() ? "no case has a profiled step" : found.not_predicted.front().why;
  } catch (const Error& error) {
    found.why_none = error.what();
  }
  found.why_no_diagnosis.clear();
  return found;
}

}  // namespace harness::explain
