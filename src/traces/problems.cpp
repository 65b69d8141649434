#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "traces/answer.h"

namespace harness::traces {
namespace {

// Fractions of the step above which a problem is reported.
constexpr double little = 0.01, of_note = 0.05, some = 0.1, much = 0.2;

void late_ranks(const Report& report, std::vector<std::string>& problems) {
  for (const LateRank& rank : report.late) {
    const bool computes = rank.compute_share > rank.own_share / 2;
    problems.push_back(fmt::format(
        "{} is late: last in {} of {} collectives that others waited in; it {}", report.gpus[rank.gpu].name(),
        rank.last, rank.of,
        computes ? fmt::format("computes {} longer than the median rank. Look at its clocks: harness doctor.",
                               percent(rank.compute_share, 0))
                 : fmt::format("idles and computes {} longer than the median rank. Look at its host and its data.",
                               percent(rank.own_share, 0))));
  }
}

// Detects NCCL over TCP or a broken network: no GPU server has links that slow.
void slow_network(const Report& report, std::vector<std::string>& problems) {
  constexpr double slow_bytes_per_s = 5e9;
  constexpr std::int64_t large = 4 << 20;
  for (const Bandwidth& b : report.bandwidths) {
    if (b.bytes < large || b.bytes_per_s > slow_bytes_per_s) continue;
    problems.push_back(
        fmt::format("{} of {} over {} ranks: {:.2g} GB/s, as over TCP. Look for NET/Socket in the log of "
                    "NCCL_DEBUG=INFO, and at the adapters: harness doctor.",
                    title_of(b.kernel_class), show_bytes(static_cast<double>(b.bytes)), b.ranks, b.bytes_per_s / 1e9));
    return;
  }
}

bool trains(const Report& report) {
  return std::ranges::any_of(report.mean.breakdown.other_compute, [](const auto& kind) {
    return kind.first.starts_with("optimizer") || kind.first == "adamw";
  });
}

// Detects gradient and parameter collectives that no computation overlaps.
void no_overlap(const Report& report, std::vector<std::string>& problems) {
  constexpr std::string_view of_gradients = "all-reduce|all-gather|reduce-scatter|collectives of unknown kind";
  const analysis::Breakdown& b = report.mean.breakdown;
  for (const Part part : {Part::data, Part::communication}) {
    if (!b[part] || (part == Part::communication && !trains(report))) continue;
    double exposed_s = 0;
    for (const analysis::KindTime& kind : b.kinds) {
      if (kind.group == key_of(part) && (part == Part::data || evidence::is_one_of(of_gradients, kind.kind)))
        exposed_s += kind.owns_s;
    }
    const double hidden_s = b.hidden_s(part);
    if (exposed_s < of_note * b.step_s || hidden_s > 0.01 * (exposed_s + hidden_s)) continue;
    problems.push_back(
        fmt::format("{} of {} run alone: no computation hides them. Overlap them with the backward pass (DDP's "
                    "buckets, --overlap-grad-reduce).",
                    ms(exposed_s), name_of(part)));
  }
}

void idle_causes(const Report& report, std::vector<std::string>& problems) {
  const double step_s = report.mean.breakdown.step_s;
  const auto share = [&](Cause cause) { return report.mean.idle_s[cause] / step_s; };
  const double loading = std::max(share(Cause::loading), report.mean.breakdown[Part::loading].value_or(0) / step_s);
  const double stalled = report.mean.idle_s.stalled_s / step_s;
  const double host = stalled > some ? 0 : share(Cause::host) + share(Cause::launch);
  const auto tell = [&](double of_step, double least, fmt::format_string<std::string> text) {
    if (of_step > least) problems.push_back(fmt::format(text, percent(of_step)));
  };
  tell(loading, of_note, "The GPU waits for data {} of the step: more loader workers, prefetching.");
  tell(stalled, some,
       "{} of the step, launched kernels do not start: lost events, or another process on the GPU. So there is no "
       "verdict on the host.");
  tell(stalled > some ? 0 : share(Cause::queued), some,
       "{} of the step passes between kernels that are queued already: they are small. Fuse them (torch.compile, fused "
       "optimizers and norms).");
  tell(host, much,
       "The host launches too slowly: {} of the step, at most (profilers slow hosts). CUDA graphs, torch.compile or "
       "larger micro-batches help.");
  tell(
      share(Cause::synchronised), some,
      "The host waits for the GPU, then launches: {} of the step. Look for .item(), logging and checks for NaN in each "
      "step.");
  tell(report.mean.copies_s / step_s, some,
       "The GPU only copies for {} of the step: offload less, or copy meanwhile (pinned memory, non_blocking, "
       "prefetching).");
  tell(share(Cause::allocation), some,
       "Memory is allocated during {} of the step. Use a pool (PyTorch's caching allocator, cudaMallocAsync).");
}

// Returns the fraction of kernel time spent in kernels without a class.
double unclassified_share(const Report& report) {
  double unknown_s = 0, all_s = 0;
  for (const TracedGpu& gpu : report.gpus) {
    const Figures& all = gpu.windows.front();
    unknown_s += all.unclassified.value_or(0) * (all.compute_s + all.communication_s);
    all_s += all.compute_s + all.communication_s;
  }
  return all_s > 0 ? unknown_s / all_s : 0;
}

// A busy GPU is not necessarily used well.
void busy_with_little(const Report& report, std::vector<std::string>& problems) {
  const analysis::Breakdown& b = report.mean.breakdown;
  const double busy_s = b.step_s - b[Part::idle].value_or(0) - b[Part::loading].value_or(0);
  const double products = b.share(Part::matrix_products) + b.share(Part::attention);
  if (busy_s < 0.9 * b.step_s || products > 0.4 || unclassified_share(report) > of_note) return;
  problems.push_back(
      fmt::format("The GPU is busy {} of the step, but {} in matrix products and attention: MFU cannot exceed that, "
                  "whatever the utilisation.",
                  percent(busy_s / b.step_s, 0), percent(products, 0)));
}

}  // namespace

std::string ms(double seconds) {
  return fmt::format("{:.{}f} ms", 1e3 * seconds, std::abs(seconds) < 1e-2 ? 2 : 1);
}

std::string short_name(const std::string& name, std::size_t most) {
  return name.substr(0, whole_characters(name, most));
}

std::vector<std::string> problems_of(const Report& report) {
  std::vector<std::string> problems;
  if (report.mean.breakdown.step_s <= 0) return problems;
  late_ranks(report, problems);
  const std::size_t before = problems.size();
  slow_network(report, problems);
  if (problems.size() == before) no_overlap(report, problems);  // no computation could hide a slow network
  idle_causes(report, problems);
  busy_with_little(report, problems);
  const double unknown = unclassified_share(report);
  if (unknown > (trains(report) ? little : of_note)) {
    std::vector<std::string> names;
    for (const NamedKernel& kernel : report.gpus.front().unclassified) names.push_back(quote(short_name(kernel.name)));
    problems.push_back(fmt::format("{} of the kernels' time has no class, so the kinds of computation say little: {}.",
                                   percent(unknown), join_first(names, 3)));
  }
  return problems;
}

std::vector<std::string> notes_of(const Report& report) {
  std::vector<std::string> notes = report.notes;
  if (report.gpus.size() > 1 && report.meetings.all.empty() && !report.mean.breakdown[Part::waiting])
    notes.emplace_back("No collective ends at once on several of these ranks: waiting is not told from transfer.");
  if (report.gpus.size() == 1 && report.mean.breakdown.parts.exposed() > 0 && !report.mean.breakdown[Part::waiting]) {
    const double least_s = report.gpus.front().waiting_at_least_s.value_or(0);
    const std::string least =
        fmt::format(", at least {} (an estimate from one rank; a rank that is late itself waits little)", ms(least_s));
    notes.push_back(
        fmt::format("Communication includes waiting for other ranks{}; traces of several ranks tell it apart.",
                    least_s > 0.001 * report.mean.breakdown.step_s ? least : ""));
  }
  double sent_s = 0;
  for (const analysis::KindTime& kind : report.mean.breakdown.kinds)
    sent_s += kind.kind == title_of(class_of("nccl sendrecv")) ? kind.owns_s : 0;
  if (report.gpus.size() > 1 && sent_s > little * report.mean.breakdown.step_s && !report.mean.breakdown[Part::bubble])
    notes.push_back(
        fmt::format("Sends and receives, {}, include waiting for other stages: they do not end in pairs.", ms(sent_s)));
  const bool numbered = std::ranges::all_of(report.gpus, [](const TracedGpu& g) { return g.steps.numbered; });
  if (numbered && std::ranges::adjacent_find(report.gpus, std::not_equal_to(),
                                             [](const TracedGpu& g) { return g.shown.name; }) != report.gpus.end())
    notes.emplace_back(
        "The ranks show different steps, each its own of median length: its number is not on all of them, or slower "
        "there.");
  const std::int64_t world = report.gpus.front().world.value_or(1);
  if (world > 1 && std::ranges::all_of(report.gpus, [](const TracedGpu& g) { return g.collectives.empty(); }))
    notes.push_back(fmt::format("The job has {} ranks, but no kernel here is known to communicate.", world));
  const auto clock = std::ranges::max_element(report.meetings.clock_s, {}, [](double s) { return std::abs(s); });
  if (clock != report.meetings.clock_s.end() && std::abs(*clock) > 100e-6)
    notes.push_back(fmt::format("The ranks' clocks differ by up to {}; the ends of collectives were aligned.",
                                ms(std::abs(*clock))));
  return notes;
}

}  // namespace harness::traces
