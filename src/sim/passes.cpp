#include "sim/simulation.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"

namespace harness::sim {

using program::Operation;
using program::OperationId;
using program::Phase;

// Simulates operations by themselves, on a single rank.
class PassCosts::Alone {
 public:
  explicit Alone(const program::ProgramSet& set) {
    set_.groups = set.groups;
    for (program::Group& group : set_.groups) {
      group.pipeline_stages.clear();
      group.replicas = program::Replicas::all;
    }
    set_.roles.resize(1);
    set_.roles[0].streams = set.roles[0].streams;
    set_.roles[0].streams.emplace_back("input");
  }

  // Adds a communication of `ticks`, from which passes added later take their input.
  void delay_input(Ticks ticks) {
    const auto stream = static_cast<program::StreamId>(set_.roles[0].streams.size() - 1);
    input_ = emit({program::AllReduce{0, {}}, stream, {}, -1, {}}, {.alone = ticks});
  }
  void add(const Pass& pass) {
    const OperationId first = next();
    for (const Member& member : pass.members) {
      Operation op = *member.operation;
      op.waits.clear();
      for (const OperationId waited : member.waits) op.waits.push_back(first + waited);
      if (member.takes_input && input_ >= 0) op.waits.push_back(input_);
      emit(std::move(op), member.cost);
    }
  }
  // Returns when the operations in [`first`, `end`) are over.
  Ticks ended(OperationId first, OperationId end) {
    if (!classes_) {
      classes_.emplace(set_);
      step_ = simulate(*classes_, cost());
    }
    Ticks last = 0;
    for (OperationId id = first; id < end; ++id) last = std::max(last, step_.times[0][id].end);
    return last;
  }
  OperationId next() const { return static_cast<OperationId>(costs_.size()); }

  // Call after ended().
  PassShares shares() const {
    PassShares shares;
    const std::vector<Held> held = sim::held(step_, *classes_, cost(), 0);
    shares.path = critical_path(step_, *classes_, cost(), {held});
    const auto communicates = [&](OperationId id) { return program::is_communication(set_.roles[0].step[id].action); };
    const double length_s = seconds_of(step_.length);
    const program::StepSplit split =
        program::split_step(intervals_of(step_, *classes_, held, 0), communicates, length_s);
    shares.exposed = split.exposed_s / length_s;
    shares.overlapped = split.overlapped_s / length_s;
    if (split.communication_s > 0) shares.computing = split.compute_s / length_s;
    return shares;
  }

 private:
  OperationId emit(Operation op, const Cost& cost) {
    set_.roles[0].step.push_back(std::move(op));
    costs_.push_back(cost);
    return next() - 1;
  }
  CostOf cost() const {
    return [this](int, OperationId id) { return costs_[static_cast<std::size_t>(id)]; };
  }

  program::ProgramSet set_;
  std::vector<Cost> costs_;
  OperationId input_ = -1;
  std::optional<RankClasses> classes_;
  SimulatedStep step_;
};

PassCosts::PassCosts(const RankClasses& sample, const RankClasses& folded, const CostOf& cost)
    : sample_(sample), folded_(folded), passes_(sample.list().size()) {
  if (folded.list().size() != passes_.size()) fail("a folded step and its sample have different classes of ranks");
  for (int c = 0; std::cmp_less(c, passes_.size()); ++c) list_passes(c, cost);
}

// Lists the passes of the middle one of three micro-batches. In each direction, its passes through the chunks are in
// order, with passes of the other two between them.
void PassCosts::list_passes(int rank_class, const CostOf& cost) {
  const std::vector<Operation>& list = sample_.program(rank_class).step;
  std::map<Phase, std::vector<std::vector<Member>>> passes;
  std::map<OperationId, OperationId> number;  // within its pass, by operation
  const program::Label* last = nullptr;       // in any pass
  for (OperationId id = 0; std::cmp_less(id, list.size()); ++id) {
    const Operation& op = list[id];
    const bool in_pass = op.label.phase == Phase::forward || op.label.phase == Phase::backward;
    if (!in_pass || op.label.micro_batch < 0 || program::peer_of(op.action) != nullptr) continue;
    const bool begins = last == nullptr || last->micro_batch != op.label.micro_batch || last->phase != op.label.phase;
    last = &op.label;
    if (op.label.micro_batch != 1) continue;
    std::vector<std::vector<Member>>& of_phase = passes[op.label.phase];
    if (begins) {
      of_phase.emplace_back();
      number.clear();
    }
    Member member{&op, cost(rank_class, id)};
    for (const OperationId waited : op.waits) {
      if (const auto known = number.find(waited); known != number.end()) member.waits.push_back(known->second);
      member.takes_input = member.takes_input || std::holds_alternative<program::Receive>(list[waited].action);
    }
    number[id] = static_cast<OperationId>(of_phase.back().size());
    of_phase.back().push_back(std::move(member));
  }
  const int chunks = static_cast<int>(passes[Phase::forward].size());
  for (int k = 0; k < chunks; ++k) {
    passes_[rank_class][{Phase::forward, k}] = shared(std::move(passes[Phase::forward][k]));
    passes_[rank_class][{Phase::backward, k}] = shared(std::move(passes[Phase::backward].at(chunks - 1 - k)));
  }
}

PassCosts::Pass* PassCosts::shared(std::vector<Member> members) {
  const auto key = [](const Member& m) {
    return std::tuple(m.cost.alone, m.cost.takes, m.cost.keeps, m.operation->stream, m.operation->action.index(),
                      m.operation->label.recomputed, m.takes_input);
  };
  const auto alike = [&](const Member& a, const Member& b) { return key(a) == key(b) && a.waits == b.waits; };
  for (const auto& known : distinct_) {
    if (std::ranges::equal(known->members, members, alike)) return known.get();
  }
  distinct_.push_back(std::make_unique<Pass>(Pass{std::move(members)}));
  measure(*distinct_.back());
  return distinct_.back().get();
}

void PassCosts::measure(Pass& pass) const {
  Alone early(sample_.set());
  early.add(pass);
  pass.behind[nullptr] = early.ended(0, early.next());
  pass.shares = early.shares();
  if (std::ranges::none_of(pass.members, &Member::takes_input)) return;
  // The input comes after all other work is over.
  Alone late(sample_.set());
  Ticks delay = 0;
  for (const Member& member : pass.members) delay += 2 * member.cost.alone;
  late.delay_input(delay);
  late.add(pass);
  pass.from_input = late.ended(0, late.next()) - delay;
}

Ticks PassCosts::behind(Pass& pass, const Pass* before) const {
  const auto [known, fresh] = pass.behind.try_emplace(before);
  if (fresh) {
    Alone both(sample_.set());
    both.add(*before);
    const OperationId first = both.next();
    both.add(pass);
    known->second = both.ended(first, both.next()) - before->behind.at(nullptr);
  }
  return known->second;
}

PassCosts::Pass& PassCosts::pass_of(int rank_class, const Operation& folded) const {
  return *passes_[rank_class].at({folded.label.phase, folded.label.layer});
}

Cost PassCosts::operator()(int rank_class, OperationId id) {
  const std::vector<Operation>& list = folded_.program(rank_class).step;
  if (list[id].label.what == program::folded_end) return {};
  const auto one_before = [&](OperationId of) {
    const program::StreamId stream = list[of].stream;
    do --of;
    while (of >= 0 && list[of].stream != stream);
    return of;
  };
  const auto is_beginning = [&](OperationId of) { return of >= 0 && list[of].label.what == program::folded_beginning; };
  Pass& pass = pass_of(rank_class, list[id]);
  OperationId before = one_before(id);
  const bool has_begun = is_beginning(before);
  if (has_begun) before = one_before(before);
  const Pass* earlier = nullptr;
  if (before >= 0) {
    // A written-out pass is represented by the pass through the same chunk.
    const int chunk = program::is_folded(list[before]) ? list[before].label.layer : list[id].label.layer;
    const auto found = passes_[rank_class].find({list[before].label.phase, chunk});
    if (found != passes_[rank_class].end()) earlier = found->second;
  }
  const Ticks whole = behind(pass, earlier);
  const Ticks beginning = std::max<Ticks>(0, whole - pass.from_input);
  Cost cost{.alone = whole};
  cost.computing = pass.shares.computing;
  if (is_beginning(id)) {
    cost.alone = beginning;
  } else {
    cost.from_input = pass.from_input;
    if (has_begun) cost.alone -= beginning;
  }
  return cost;
}

const PassShares& PassCosts::shares(int rank_class, OperationId id) const {
  return pass_of(rank_class, folded_.program(rank_class).step[id]).shares;
}

}  // namespace harness::sim
