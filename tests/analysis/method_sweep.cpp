#include "method_sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

namespace harness::method {
namespace {

constexpr int baseline = 0, copy = 1;

struct PageLook {
  int rounds = 0;
  double share = 1;
};

// "5,8,12": those whose rounds are over. Where the sweep ended between two, the round that it reached is one more;
// where none is declared, it is the only one.
std::vector<PageLook> looks_taken(const store::Result& file) {
  int reached = 0;
  for (const store::ResultBlock& block : file.blocks) {
    if (block.status == store::BlockStatus::ok) reached = std::max(reached, block.round + 1);
  }
  std::vector<int> declared;
  std::istringstream list(file.looks);
  for (std::string rounds; std::getline(list, rounds, ',');) declared.push_back(std::stoi(rounds));
  if (declared.empty()) return {{reached, 1}};
  const double R = declared.back();
  std::vector<PageLook> looks;
  int before = 0;
  for (int rounds : declared) {
    if (before >= reached) break;
    rounds = std::min(rounds, reached);
    looks.push_back({rounds, (rounds - before) / R});
    before = rounds;
  }
  return looks;
}

}  // namespace

std::vector<PageBlock> blocks_before(const store::Result& file, int rounds) {
  std::vector<PageBlock> blocks;
  for (const auto& [i, seconds] : block_medians(file)) {
    const store::ResultBlock& b = file.blocks[i];
    if (b.round >= rounds) continue;
    const double tokens = file.at(b).tokens_per_step / file.cases[baseline].tokens_per_step;
    blocks.push_back({std::log(seconds / tokens), b.start_unix_s + b.setup_s, 0, b.case_index, b.round, b.session});
  }
  return grouped(blocks);
}

std::vector<PageBlock> grouped(std::vector<PageBlock> blocks, bool copy_apart) {
  for (PageBlock& b : blocks) b.group = copy_apart ? b.name : std::max(b.name - 1, 0);
  return blocks;
}

double comparison_alpha(const store::Result& file) {
  std::size_t comparisons = file.ladder.empty() ? 0 : 2 * (file.ladder.size() - 1);
  for (const store::ResultCase& c : file.cases) {
    comparisons += c.name != "baseline" && c.name != "baseline_again" && c.status != store::CaseStatus::impossible;
  }
  return (1 - file.confidence) / static_cast<double>(comparisons);
}

std::vector<PageAnswer> answers_of(const store::Result& file, const PageEstimator& estimator) {
  std::vector<PageAnswer> answers(file.cases.size());
  std::vector<PageBlock> blocks;
  for (const PageLook& look : looks_taken(file)) {
    blocks = blocks_before(file, look.rounds);
    std::erase_if(blocks, [&](const PageBlock& b) {
      const int settled = answers[b.name].settled_after;
      return settled > 0 && b.round >= settled;
    });
    std::vector<int> open;
    for (int c = copy + 1; c < file.case_count(); ++c) {
      if (answers[c].settled_after == 0) open.push_back(c);
    }
    const double alpha = comparison_alpha(file) * look.share;
    const std::vector<PageInterval> intervals = estimator(blocks, open, alpha);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const analysis::Verdict found = verdict(intervals[i], file.smallest_effect);
      const bool settled = !file.looks.empty() && found != analysis::Verdict::unresolved;
      answers[open[i]] = {intervals[i], found, settled ? look.rounds : 0, alpha, blocks};
    }
  }
  // "The control is tested once, at the end."
  const double alone = 1 - file.confidence;
  const PageInterval control = estimator(blocks, {copy}, alone)[0];
  answers[copy] = {control, verdict(control, file.smallest_effect), 0, alone, blocks};
  return answers;
}

std::vector<PageInterval> by_level(const std::vector<PageBlock>& blocks, const std::vector<int>& cases, double alpha) {
  const bool control = cases == std::vector{copy};
  const PageModel model(grouped(blocks, control));
  std::vector<PageInterval> intervals;
  for (const int c : cases) intervals.push_back(model.interval(control ? c : c - 1, alpha));
  return intervals;
}

std::vector<double> within_rounds(const std::vector<PageBlock>& blocks,
                                  const std::vector<std::pair<int, double>>& cases) {
  std::map<int, std::map<int, const PageBlock*>> rounds;
  for (const PageBlock& b : blocks) rounds[b.round][b.name] = &b;
  std::vector<double> d;
  for (const auto& [round, of_cases] : rounds) {
    double sum = 0;
    bool counts = true;
    for (const auto& [c, w] : cases) {
      const auto found = of_cases.find(c), first = of_cases.find(cases[0].first);
      counts = counts && found != of_cases.end() && first->second->session == found->second->session;
      if (counts) sum += w * found->second->y;
    }
    if (counts) d.push_back(sum);
  }
  return d;
}

PageInterval yuen(const std::vector<double>& d, double alpha) {
  const Trimmed of = trimmed(d);
  return t_interval(of.mean, std::sqrt(of.d), of.h - 1, alpha);
}

std::vector<PageInterval> by_pairs(const std::vector<PageBlock>& blocks, const std::vector<int>& cases, double alpha) {
  std::vector<PageInterval> intervals;
  for (const int c : cases) intervals.push_back(yuen(within_rounds(blocks, {{c, 1}, {baseline, -1}}), alpha));
  return intervals;
}

store::Result changed(store::Result file, const std::string& uuid,
                      const std::function<double(const store::ResultBlock&)>& log_factor) {
  file.run_uuid = uuid;
  for (std::size_t i = 0; i < file.blocks.size(); ++i) {
    const double factor = std::exp(log_factor(file.blocks[i]));
    for (float& s : file.step_seconds[i]) s = static_cast<float>(s * factor);
  }
  return file;
}

}  // namespace harness::method
