#include "plan/plan.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "program/builder.h"

namespace harness::plan {
namespace {

// The layout, and all variables except those that only reach the worker's environment.
std::string settings_of_programs(const PlannedCase& planned) {
  std::string text = program::text_of(planned.layout);
  for (const config::Variable& variable : config::registry()) {
    const bool environment = !variable.environment_name.empty() || variable.free_parts;
    if (!environment) text += fmt::format("|{}", variable.print(planned.settings));
  }
  return text;
}

// Counts the sample's middle micro-batch once for each folded one.
program::Times in_the_sample(const program::FoldedStep& step) {
  return [folded = step.micro_batches - 2](const program::Operation& op) {
    return op.label.micro_batch == 1 ? folded : 1;
  };
}

// The FLOP of attention, over all ranks.
program::Flop attention_flop(const BuiltStep& step, bool recomputed) {
  const auto which = [recomputed](const program::Operation& op) {
    return program::attention_of(op.action) && op.label.recomputed == recomputed;
  };
  if (!step.folded) return program::total_flop(*step.whole, program::once, which);
  return program::total_flop(step.folded->sample, in_the_sample(*step.folded), which);
}

// Removes padding from the FLOP that the Programs count. `attention` is part of them; `again`, the recomputed
// attention.
void count_tokens_alone(Survey& s, const workloads::Filling& filling, const program::Flop& attention, double again) {
  if (filling.tokens == 1) return;
  s.goodput = filling.tokens;
  const auto of_tokens = [&](double all, double attention_alone) {
    return (all - attention_alone) * filling.tokens + attention_alone * filling.attention;
  };
  const double recomputed = of_tokens(s.hardware_flop - s.flop.model, again);
  s.flop = {of_tokens(s.flop.model, attention.model), of_tokens(s.flop.noncausal, attention.noncausal)};
  s.hardware_flop = s.flop.model + recomputed;
}

void require_sound(const program::ProgramSet& set, const std::string& case_name) {
  const auto problems = program::verify(set, 5);
  if (problems.empty()) return;
  std::string text =
      fmt::format("case {}: its program is invalid, which is a bug in the workload; please report it:", case_name);
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw Error(text);
}

// Returns the passes of a micro-batch and of the `every - 1` after it.
program::RepeatedPart repeated_part(const program::Program& program, const program::Repetition& repetition) {
  const std::vector<program::Operation>& step = program.step;
  const auto forward = [&](program::OperationId id, int least_micro_batch) {
    const program::Label& label = step[id].label;
    return label.phase == program::Phase::forward && !label.recomputed && label.micro_batch >= least_micro_batch;
  };
  program::RepeatedPart part{.begin = 0, .end = 0, .tail = static_cast<program::OperationId>(step.size())};
  while (!forward(part.begin, repetition.from)) ++part.begin;
  for (part.end = part.begin; !forward(part.end, repetition.from + repetition.every);) ++part.end;
  while (!forward(part.tail - 1, 0)) --part.tail;
  return part;
}

// Returns the memory of a role with all its passes. A few micro-batches are written out; the others repeat them.
std::int64_t arena_bytes(const program::FoldedStep& step, const program::Repetition& r, program::FusedSet fused) {
  const auto written_out = [&](int micro_batches) {
    return program::lower(step.written_out(r.role, micro_batches), fused);
  };
  const int all = step.micro_batches, some = r.enough + (all - r.enough) % r.every;
  if (some < all) {
    const program::Program program = written_out(some);
    const auto bytes = program::arena_bytes(program, repeated_part(program, r), (all - some) / r.every);
    if (bytes) return *bytes;
  }
  return program::plan_arena(written_out(all)).bytes;
}

void note_memory(Survey& s, int role, std::int64_t bytes) {
  if (bytes > s.peak_bytes) {
    s.peak_bytes = bytes;
    s.peak_role = role;
  }
}

// Counts everything but the memory.
Survey counts_of(const program::ProgramSet& set, const program::Times& times) {
  Survey s;
  s.roles = static_cast<std::int64_t>(set.roles.size());
  s.role_axes = set.role_axes;
  s.flop = program::total_flop(set, times);
  s.hardware_flop = s.flop.model + program::total_flop(set, times, program::is_recomputed).model;
  for (const program::Program& program : set.roles) s.counts.push_back(program::count(set, program, times));
  return s;
}

// `context`: how many ranks share a sequence. The Programs count a rank's own keys, and its queries meet all.
Budget budget_of(const program::Program& program, const program::DeviceRates& rates, int context) {
  Budget b;
  b.rates = rates;
  std::map<std::tuple<std::string, std::string, program::Phase, bool>, std::size_t> known;
  const std::vector<char> beside = program::computes_beside_another(program.step, program.streams.size());
  for (std::size_t i = 0; i < program.step.size(); ++i) {
    const program::Operation& op = program.step[i];
    if (program::is_communication(op.action)) continue;
    const std::string kind(program::name_of(op.action));
    // Products are told apart by their label; for other kinds the phase suffices.
    const std::string what(std::holds_alternative<program::Matmul>(op.action) ? op.label.what : "");
    const bool again = op.label.recomputed;
    const auto [it, is_new] = known.try_emplace({kind, what, op.label.phase, again}, b.lines.size());
    if (is_new) b.lines.push_back({.kind = kind, .what = what, .phase = op.label.phase, .recomputed = again});
    BudgetLine& line = b.lines[it->second];
    const double flop = (program::attention_of(op.action) ? context : 1) * program::flop_of(op.action).model;
    const double bytes = program::needed_bytes(program, op.action);
    const program::LeastTime least = program::least_time(flop, bytes, rates);
    const double least_s = least.seconds();
    ++line.operations;
    line.flop += flop;
    line.bytes += bytes;
    line.bound = least.bound();
    line.least_s += least_s;
    if (beside[i] != 0 && op.stream != 0) b.least_s -= least_s;  // at best hidden behind the compute stream
    if (!again) b.model_flop += flop;
  }
  for (const BudgetLine& line : b.lines) b.least_s += line.least_s;
  return b;
}

}  // namespace

Survey survey_of(const program::ProgramSet& step) {
  Survey s = counts_of(step, program::once);
  for (int role = 0; role < s.roles; ++role) note_memory(s, role, program::plan_arena(step.roles[role]).bytes);
  return s;
}

Survey survey_of(const program::FoldedStep& step, program::FusedSet fused) {
  Survey s = counts_of(step.sample, in_the_sample(step));
  for (const program::Repetition& r : step.fullest) note_memory(s, r.role, arena_bytes(step, r, fused));
  return s;
}

const Survey& Surveyor::survey_step(const PlannedCase& the_case) {
  const config::Settings& settings = the_case.settings;
  const program::FusedSet fused = config::fused_for(backend_, settings);
  built_ = {};
  if (config::traits_of(backend_).predicts())
    built_.folded = workloads::workload_of(settings).folded(model_, settings, the_case.layout);
  if (!built_.folded) built_.whole = workloads::build_programs(model_, settings, the_case.layout);
  program::ProgramSet& set = built_.folded ? built_.folded->set : *built_.whole;
  const std::uint64_t hash = program::hash(set);
  const auto [equal, unknown] = by_programs_.try_emplace({hash, fused});
  set = program::lower(std::move(set), fused);
  if (built_.folded) built_.folded->sample = program::lower(std::move(built_.folded->sample), fused);
  Survey& s = equal->second;
  if (!unknown) return s;
  if (built_.folded) {
    require_sound(built_.folded->sample, the_case.name);
    s = survey_of(*built_.folded, fused);
  } else {
    require_sound(set, the_case.name);
    s = survey_of(set);
  }
  s.program_hash = program::hash(set);
  return s;
}

Survey Surveyor::survey(const PlannedCase& the_case) {
  const config::Settings& settings = the_case.settings;
  const auto [alike, fresh] = by_settings_.try_emplace(settings_of_programs(the_case));
  Survey& s = alike->second;
  built_ = {};
  if (!fresh) return s;
  s = survey_step(the_case);
  // If ranks share a sequence, the Programs count only a rank's own queries and keys.
  const int others = settings.sequence_ranks() - 1;
  const program::Flop attention = attention_flop(built_, false);
  const double again = attention_flop(built_, true).model;
  s.flop.model += attention.model * others;
  s.flop.noncausal += attention.noncausal * others;
  s.hardware_flop += attention.model * others + again * others;
  const workloads::Workload& workload = workloads::workload_of(settings);
  count_tokens_alone(s, workload.filling(model_, settings, the_case.layout), attention, again);
  s.tokens_per_step = static_cast<double>(workload.tokens_per_step(model_, settings, the_case.layout));
  s.rate = workload.rate(settings, the_case.layout);
  return s;
}

Budget budget(const config::Model& model, config::BackendKind backend, const PlannedCase& planned,
              const config::Hardware& hardware) {
  if (!planned.is_possible()) fail("case {} is impossible: {}", planned.name, planned.impossible);
  const program::DeviceRates rates{hardware.peak_flops(planned.settings.precision), hardware.memory_bytes_per_s};
  if (!(rates.flops > 0))
    fail("the hardware file {} states no peak for the precision of {}", hardware.name, planned.name);
  if (!(rates.memory_bytes_per_s > 0)) fail("the hardware file {} states no memory_bandwidth", hardware.name);
  const program::ProgramSet set = program::lower(workloads::build_programs(model, planned.settings, planned.layout),
                                                 config::fused_for(backend, planned.settings));
  Budget longest;
  double model_flop = 0;
  for (std::size_t role = 0; role < set.roles.size(); ++role) {
    Budget b = budget_of(set.roles[role], rates, planned.settings.sequence_ranks());
    model_flop += b.model_flop;
    if (role > 0 && b.least_s <= longest.least_s) continue;
    longest = std::move(b);
    longest.role = static_cast<std::int64_t>(role);
  }
  if (!(longest.model_flop > 0)) fail("case {} computes nothing, so it has no budget", planned.name);
  longest.roles = std::ssize(set.roles);
  longest.model_flop = model_flop / static_cast<double>(longest.roles);  // as many ranks have each role
  return longest;
}

}  // namespace harness::plan
