// Breakdown, roof, waterfall and shares of docs/method.md, recomputed from the timeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "analysis/findings.h"
#include "method_page.h"

namespace harness::method {
namespace {

using Seconds = std::map<std::string, double>;  // by key_of(part)
constexpr double tolerance = 1e-9;              // of seconds

bool is_send_or_receive(const std::string& kind) {
  return kind == "send" || kind == "receive";
}

bool communicates(const std::string& kind) {
  static const std::set<std::string> kinds{"all_reduce", "reduce_scatter", "all_gather", "all_to_all"};
  return kinds.contains(kind) || is_send_or_receive(kind);
}

// What a stretch of the step is, the lowest first: rules 1 and 2.
struct Stretch {
  double from = 0, to = 0;
  int rank = 0;
  std::string part;
};

// One profiled step of a case by the rules of the page.
class PageStep {
 public:
  PageStep(const store::Result& file, std::int32_t case_index) : file_(file), case_(case_index) {
    std::map<int, std::vector<const store::ResultInterval*>> of_rank;
    for (const store::ResultInterval& x : file.timeline) {
      if (x.case_index == case_index) of_rank[x.rank].push_back(&x);
    }
    const int ranks_of_role = file.case_at(case_index).ranks / static_cast<int>(of_rank.size());
    for (const auto& [rank, intervals] : of_rank) {
      Seconds parts = divided(rank, intervals);
      const int first = rank / ranks_of_role * ranks_of_role;
      over_ranks(parts, rank, first, first + ranks_of_role);
      for (const auto& [part, s] : parts) mean[part] += s / static_cast<double>(of_rank.size());
    }
  }
  Seconds mean;

 private:
  const store::ResultSplit& split(int rank) const {
    return *std::ranges::find_if(file_.splits,
                                 [&](const store::ResultSplit& s) { return s.case_index == case_ && s.rank == rank; });
  }

  std::string group_of(const store::ResultInterval& x) const {
    for (const store::ResultOperations& row : file_.operations) {
      if (row.case_index == case_ && row.role == x.role && row.stream == x.stream && row.kind == x.kind &&
          row.what == x.what)
        return row.group;
    }
    return x.stream;
  }

  void add_stretches(const store::ResultInterval& x, std::vector<Stretch>& all) const {
    if (!communicates(x.kind)) {
      std::string part = "other_compute";
      if (x.kind == "matmul") part = "matrix_products";
      if (x.kind.starts_with("attention")) part = "attention";
      if (x.recomputed != 0) part = "recomputation";
      all.push_back({x.start_s, x.end_s, x.stream == "compute" ? 0 : 1, part});
      return;
    }
    static const std::map<std::string, int> order{
        {"tensor", 0}, {"pipeline", 1}, {"data", 2}, {"embedding", 3}, {"world", 4}};
    const store::ResultCase& of = file_.case_at(case_);
    double at = x.start_s;
    const auto wait = [&](const char* part, double s, int rank) {
      const double to = std::min(at + s, x.end_s);
      if (to > at) all.push_back({at, to, rank, part});
      at = std::max(at, to);
    };
    const bool stage_has_others = of.layout[program::Axis::tensor] * of.layout[program::Axis::data] > 1;
    if (!is_send_or_receive(x.kind) && stage_has_others) wait("waiting", x.waiting_s, 20);
    if (of.layout[program::Axis::pipeline] > 1) wait("bubble", x.bubble_s, 21);
    const std::string group = group_of(x);
    all.push_back({at, x.end_s, 2 + order.at(group), group});
  }

  // The seconds of each part on a rank with a timeline, between all beginnings and ends.
  Seconds divided(int rank, const std::vector<const store::ResultInterval*>& intervals) const {
    std::vector<Stretch> all;
    for (const store::ResultInterval* x : intervals) add_stretches(*x, all);
    const double step_s = split(rank).step_s;
    std::set<double> moments{0, step_s};
    for (const Stretch& s : all) {
      moments.insert(std::clamp(s.from, 0.0, step_s));
      moments.insert(std::clamp(s.to, 0.0, step_s));
    }
    Seconds parts{{"idle", 0}, {"loading", 0}};
    bool first = true;
    for (auto to = std::next(moments.begin()); to != moments.end(); ++to) {
      const double from = *std::prev(to), middle = (from + *to) / 2;
      const Stretch* owner = nullptr;
      for (const Stretch& s : all) {
        if (s.from <= middle && middle < s.to && (owner == nullptr || s.rank < owner->rank)) owner = &s;
      }
      if (owner != nullptr) {
        parts[owner->part] += *to - from;
      } else if (first) {
        const double loading = std::min(split(rank).loading_s, *to - from);
        parts["loading"] += loading;
        parts["idle"] += *to - from - loading;
      } else {
        parts["idle"] += *to - from;
      }
      first = false;
    }
    return parts;
  }

  double mean_of(double store::ResultSplit::*what, int first, int end) const {
    double sum = 0;
    for (int rank = first; rank < end; ++rank) sum += split(rank).*what;
    return sum / (end - first);
  }

  // "The mean of a role".
  void over_ranks(Seconds& parts, int rank, int first, int end) const {
    static const std::set<std::string> computation{"matrix_products", "attention", "other_compute", "recomputation"},
        idle{"idle", "loading"}, waits{"waiting", "bubble"};
    const auto sum_of = [&](const auto& wanted) {
      double sum = 0;
      for (const auto& [part, s] : parts) sum += wanted(part) ? s : 0;
      return sum;
    };
    const auto scale = [&](const auto& wanted, double to) {
      const double now = sum_of(wanted);
      for (auto& [part, s] : parts) {
        if (wanted(part) && now > 0) s *= to / now;
      }
    };
    scale([&](const std::string& p) { return computation.contains(p); },
          mean_of(&store::ResultSplit::compute_s, first, end));
    scale([&](const std::string& p) { return idle.contains(p); }, mean_of(&store::ResultSplit::idle_s, first, end));
    double exposed = mean_of(&store::ResultSplit::exposed_s, first, end);
    const auto wait = [&](const char* part, double store::ResultSplit::*waited) {
      if (!parts.contains(part)) return;
      const double own = split(rank).*waited;
      const double share = own > 0 ? std::min(1.0, parts[part] / own) : 0;
      parts[part] = std::min(exposed, share * mean_of(waited, first, end));
      exposed -= parts[part];
    };
    wait("waiting", &store::ResultSplit::waiting_s);
    wait("bubble", &store::ResultSplit::bubble_s);
    scale([&](const std::string& p) { return !computation.contains(p) && !idle.contains(p) && !waits.contains(p); },
          exposed);
  }

  const store::Result& file_;
  std::int32_t case_;
};

class MethodPageBreakdown : public testing::Test {
 protected:
  const store::Result& file = example();
  const analysis::Findings findings = analysis::find_all(file);
};

TEST_F(MethodPageBreakdown, EachMomentBelongsToOnePart) {
  ASSERT_EQ(findings.steps.size(), file.cases.size() - 1);  // all but the control
  for (const analysis::StepFindings& step : findings.steps) {
    SCOPED_TRACE(file.at(step).name);
    Seconds page = PageStep(file, step.case_index).mean;
    double sum = 0;
    for (const Part part : all_parts) {
      EXPECT_NEAR(step.breakdown.mean[part].value_or(0), page[key_of(part)], tolerance) << key_of(part);
      sum += step.breakdown.mean[part].value_or(0);
    }
    EXPECT_NEAR(sum / step.breakdown.mean.step_s, 1, 0.005);
  }
}

TEST_F(MethodPageBreakdown, WaterfallLeadsFromThePeakToMfu) {
  for (const analysis::StepFindings& step : findings.steps) {
    SCOPED_TRACE(file.at(step).name);
    ASSERT_TRUE(step.waterfall);
    const store::ResultCase& of = file.at(step);
    Seconds page = PageStep(file, step.case_index).mean;
    double P = 0;
    for (const auto& [part, s] : page) P += s;
    const double T = step_time(file, step.case_index), R = of.peak_flops_per_rank;
    const double F = of.model_flop_per_step / of.ranks;
    const double attention = (of.noncausal_flop_per_step - of.model_flop_per_step) / of.ranks;
    double left = 1;
    for (const analysis::WaterfallBar& bar : step.waterfall->bars) {
      SCOPED_TRACE(bar.name);
      double points = F / (R * P) - F / (R * T);
      if (bar.part) {
        double flop = 0;
        if (*bar.part == Part::attention) flop = attention;
        if (*bar.part == Part::matrix_products) flop = F - attention;
        points = (page[key_of(*bar.part)] - flop / R) / P;
        if (flop > 0) {
          EXPECT_NEAR(*bar.roof_s, flop / R, tolerance);
        }
        // "parts that nothing needs"
        for (const auto part : {Part::waiting, Part::idle, Part::loading}) {
          if (*bar.part == part) {
            EXPECT_EQ(bar.roof_s, 0);
          }
        }
      }
      EXPECT_NEAR(bar.points, points, 1e-7);
      left -= bar.points;
    }
    EXPECT_NEAR(left, F / (R * T), 1e-9);
    EXPECT_NEAR(step.waterfall->mfu, F / (R * T), 1e-9);
  }
}

// "Bottleneck": the largest loss; of each variable what the parts take that it acts on, and what it saves at most.
TEST_F(MethodPageBreakdown, SharesOfTheStep) {
  const analysis::StepFindings& step = findings.steps.front();
  Seconds page = PageStep(file, step.case_index).mean;
  double P = 0;
  for (const auto& [part, s] : page) P += s;
  const store::ResultCase& of = file.at(step);
  const double attention = (of.noncausal_flop_per_step - of.model_flop_per_step) / of.ranks;
  const double products = of.model_flop_per_step / of.ranks - attention;
  const double products_lost = std::max(0.0, page["matrix_products"] - products / of.peak_flops_per_rank) / P;
  const double attention_lost = std::max(0.0, page["attention"] - attention / of.peak_flops_per_rank) / P;
  EXPECT_EQ(step.bottleneck.kind, analysis::BottleneckKind::compute);
  EXPECT_NEAR(step.bottleneck.share, products_lost + attention_lost, 1e-7);
  const double computing = (page["matrix_products"] + page["attention"] + page["other_compute"]) / P,
               gaps = (page["idle"] + page["bubble"] + page["tensor"] + page["pipeline"]) / P;
  const std::map<std::string, double> of_variables{
      {"precision", computing + (page["tensor"] + page["pipeline"]) / P},
      {"layout", computing + gaps + (page["data"] + page["embedding"]) / P},
      {"bucket_size", page["data"] / P},
      {"micro_batch_size", computing + gaps}};
  for (const auto& [variable, share] : of_variables) {
    const auto lever = std::ranges::find(step.bottleneck.levers, variable, &analysis::Lever::variable);
    ASSERT_NE(lever, step.bottleneck.levers.end()) << variable;
    EXPECT_NEAR(lever->share, share, 1e-7) << variable;
  }
  const auto bound = [&](const std::string& variable) {
    return std::ranges::find(step.bottleneck.levers, variable, &analysis::Lever::variable)->most;
  };
  const auto most = [&](const std::string& variable) { return bound(variable).value_or(NAN); };
  const double idle = page["idle"] / P, all_messages = (page["tensor"] + page["pipeline"]) / P;
  EXPECT_NEAR(most("bucket_size"), page["data"] / P, 1e-7);
  EXPECT_NEAR(most("micro_batch_size"),
              products_lost + attention_lost + page["other_compute"] / P + all_messages + idle + page["bubble"] / P,
              1e-7);
  // The file has a case in bf16, whose peak is another.
  const store::ResultCase* in_bf16 = file.find_case("precision=bf16");
  ASSERT_NE(in_bf16, nullptr);
  const double best = std::max(in_bf16->peak_flops_per_rank, of.peak_flops_per_rank);
  EXPECT_NEAR(
      most("precision"),
      (std::max(0.0, page["matrix_products"] - products / best) + std::max(0.0, page["attention"] - attention / best) +
       page["other_compute"] + page["tensor"] + page["pipeline"]) /
          P,
      1e-7);
  // Nobody knows what more threads reach.
  EXPECT_FALSE(bound("threads"));
}

// Nothing that was proven saves more than advice said it could: the end of its interval that is worth least.
TEST_F(MethodPageBreakdown, NoProvenGainExceedsWhatItsVariableSavesAtMost) {
  int proven = 0;
  for (const analysis::CaseSummary& row : findings.summary.cases) {
    if (row.role != store::CaseRole::change || !row.effect || row.effect->verdict != analysis::Verdict::faster)
      continue;
    const auto& levers = findings.steps.front().bottleneck.levers;
    const auto lever = std::ranges::find(levers, file.at(row).variable, &analysis::Lever::variable);
    if (lever == levers.end() || !lever->most) continue;
    ++proven;
    EXPECT_LE(1 - row.effect->high, *lever->most) << row.name;
  }
  EXPECT_GE(proven, 2);
}

}  // namespace
}  // namespace harness::method
