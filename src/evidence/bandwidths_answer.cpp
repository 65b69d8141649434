#include <algorithm>
#include <cmath>

#include "analysis/published.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/bandwidths.h"

namespace harness::evidence {
namespace {

// Formats "128M", which nccl-tests and `sweep -b` accept.
std::string nccl_size(std::int64_t bytes) {
  constexpr std::int64_t mega = 1 << 20;
  return bytes % mega == 0 ? fmt::format("{}M", bytes / mega) : std::to_string(bytes);
}

std::string rate_text(double bytes_per_s) {
  return fmt::format("{:.1f} GB/s", bytes_per_s / giga);
}

// "H100" of "H100 80GB HBM3", "A100" of "A100-SXM4-80GB", "MI300X" of "AMD Instinct MI300X", "RTX 4090" of "GeForce RTX
// 4090".
std::string short_gpu(std::string_view name) {
  for (const std::string_view brand : {"AMD Instinct ", "Tesla ", "GeForce "})
    if (name.starts_with(brand)) name.remove_prefix(brand.size());
  if (name.starts_with("Graphics")) return "GPUs";  // "NVIDIA Graphics Device": unknown to the driver
  constexpr std::string_view series = "RTX ";
  return std::string(name.substr(0, name.find_first_of(" -", name.starts_with(series) ? series.size() : 0)));
}

// Returns the sizes with a busbw below 85 % of both neighbours.
std::vector<const SizeRow*> holes(const Bandwidths& measured) {
  constexpr double share = 0.85;
  std::vector<const SizeRow*> found;
  const std::vector<SizeRow>& rows = measured.rows;
  for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
    const double neighbour = std::min(rows[i - 1].busbw(), rows[i + 1].busbw());
    if (rows[i].busbw() > 0 && rows[i].busbw() < share * neighbour) found.push_back(&rows[i]);
  }
  return found;
}

void add_holes(const std::vector<const SizeRow*>& found, Answer& out) {
  std::vector<std::string> dips, sizes;
  for (const SizeRow* row : found) {
    dips.push_back(fmt::format("{} B: {} between two that are higher", row->bytes, rate_text(row->busbw())));
    sizes.push_back(print_bytes_exact(row->bytes));
  }
  out.fact("dips", dips.empty() ? "none" : join(dips, "; "));
  if (dips.empty()) return;
  const std::string text = "a hole at " + join_first(sizes, 3);
  out.headline += "; " + text;
  out.tell("holes", "less than 85 % of the sizes around: " + join_first(dips, 3));
  out.problems.push_back(text +
                         ": NCCL changes its algorithm or protocol there, or the network loses packets at that load; "
                         "compare NCCL_ALGO and NCCL_PROTO at these sizes");
}

// Across nodes, a node's adapters limit a ring; within a node, a GPU's NVLinks do. Trees on two nodes and NVLS switch
// reduction can exceed this limit because busbw counts ring traffic. In an all-to-all, each GPU's adapters limit its
// traffic to other nodes; traffic within the node comes on top. Over several racks, all ranks of a rack share its
// adapters, so NVLinks limit a ring; the output does not say which hosts are in which rack.
void add_limit(const Bandwidths& measured, const std::string& collective, const SizeRow& peak,
               const std::optional<config::Hardware>& hardware, Answer& out) {
  if (!hardware || measured.hosts.empty() || measured.split) return;
  constexpr int most_of_a_host = 16;  // GPUs; a larger node is a rack whose hosts NVLink connects
  const bool racks = hardware->gpus_of_node > most_of_a_host;
  const bool several = racks ? measured.ranks > hardware->gpus_of_node : measured.hosts.size() > 1;
  const bool ring = is_one_of("all_reduce|all_gather|reduce_scatter|broadcast|reduce", collective);
  const bool all_to_all = collective == "alltoall";
  if (measured.hosts.size() > 1 && !ring && (!all_to_all || (racks && several))) return;
  double limit = several ? hardware->node_bytes_per_s : hardware->nvlink_bytes_per_s;
  const double ranks = static_cast<double>(measured.ranks),
               nodes = racks ? std::ceil(ranks / hardware->gpus_of_node) : static_cast<double>(measured.hosts.size()),
               used = ranks / nodes;
  if (several && hardware->gpus_of_node > 0) limit *= std::min(1.0, used / hardware->gpus_of_node);
  if (several && all_to_all) limit *= (ranks - 1) / (ranks - used) / used;
  const bool by_nvlinks = !several || (racks && limit > hardware->nvlink_bytes_per_s);
  if (by_nvlinks) limit = hardware->nvlink_bytes_per_s;
  if (limit <= 0) return;
  out.fact("limit", rate_text(limit));
  out.fact("share_of_limit", peak.busbw() / limit);
  const char* carries = "a GPU's NVLinks in one direction";
  if (!by_nvlinks) carries = "what the network adapters beside these GPUs of a node carry";
  if (several && all_to_all) carries = "what a GPU's network adapter carries, and what stays on its node";
  const char* above =
      several ? ": a ring's limit; trees on 2 nodes and NVLS may exceed it" : ": a ring's limit; NVLS may exceed it";
  const double share = peak.busbw() / limit;
  const std::string text = fmt::format("{} of {:.0f} GB/s", percent(share, share < 0.1 ? 1 : 0), limit / giga);
  out.tell("limit", fmt::format("{}, {} ({}){}", text, carries, hardware->file, ring ? above : ""));
  const bool short_of_it = share < 0.25 && measured.rows.back().bytes >= 64 << 20;  // latency dominates below this size
  if (!short_of_it || measured.hosts.size() < 2 || (racks && several)) return;
  if (racks)
    out.problem(text + ", " + carries,
                "NVLink does not join these hosts: they are of several racks, or IMEX is not set up (NCCL's log then "
                "says MNNVL 0)");
  else
    out.problem(text + ", " + carries,
                "NCCL runs over TCP sockets, without GPUDirect RDMA or over few adapters (its log says it), or the "
                "network is not that of " +
                    hardware->file);
}

// Before nccl-tests 2.13 rows contain differences, whose tolerance depends on type and ranks; the program judges them.
void add_wrong(const Bandwidths& measured, Answer& out) {
  constexpr double largest_difference = 1e-2;  // for fp16 sums, if the end of the output is missing
  double wrong = 0, at_most = 0;
  bool checked = measured.out_of_bounds > 0;
  for (const SizeRow& row : measured.rows) {
    for (const auto& found : {row.out_of_place.wrong, row.in_place.wrong}) {
      checked = checked || found.has_value();
      at_most = std::max(at_most, found.value_or(0));
      if (measured.wrong_is_a_count) wrong += found.value_or(0);
    }
  }
  if (!measured.wrong_is_a_count && measured.out_of_bounds < 0 && at_most > largest_difference) wrong = 1;
  const auto results =
      static_cast<std::int64_t>(std::min(std::max(wrong, static_cast<double>(measured.out_of_bounds)), 1e15));
  if (checked) out.fact("wrong", results);
  if (results <= 0) return;
  out.problems.push_back(plural(results, "wrong result") +
                         ": the transport or a GPU corrupts data; no bandwidth counts until this is found (rerun on "
                         "fewer GPUs until it goes away)");
  out.headline = "wrong results: " + out.headline;
}

std::string shape_of(const Bandwidths& measured, const std::string& collective) {
  if (!measured.test.empty()) return measured.test;
  if (collective.empty()) return "unknown";
  const SizeRow& row = measured.rows.back();
  std::string factor = fmt::format("{} / {}", measured.ranks - 1, measured.ranks);
  if (collective == "all_reduce")
    factor = "2 x " + factor;
  else if (bus_factor(collective, measured.ranks) == 1)
    factor = "1";
  return fmt::format("unknown ({} by its shape: {}, busbw / algbw = {:.2f} = {})", collective,
                     measured.redop.empty() ? "no redop" : measured.redop,
                     row.algbw() > 0 ? row.busbw() / row.algbw() : 0.0, factor);
}

std::string place_text(const Bandwidths& measured) {
  const char* unknown = measured.kind == "nccl-tests" ? "GPUs" : "ranks";
  const std::string gpu = measured.gpu.empty() ? unknown : short_gpu(measured.gpu);
  const auto hosts = std::ssize(measured.hosts);
  if (hosts > 1 && measured.ranks % hosts == 0)
    return fmt::format(" on {} nodes of {} {}", hosts, measured.ranks / hosts, gpu);
  if (measured.ranks > 0) return fmt::format(" on {} {}", measured.ranks, gpu);
  return "";
}

void add_odd_places(const Bandwidths& measured, const SizeRow& peak, Answer& out) {
  const SizeRow& last = measured.rows.back();
  constexpr double falls = 0.9, apart = 0.1;
  if (last.bytes > peak.bytes && last.busbw() < falls * peak.busbw()) {
    say(out.problems, "busbw falls again at the largest sizes: {} at {}, {} at {}", rate_text(peak.busbw()),
        print_bytes_exact(peak.bytes), rate_text(last.busbw()), print_bytes_exact(last.bytes));
  }
  const double outside = peak.out_of_place.busbw.value_or(0), inside = peak.in_place.busbw.value_or(0);
  if (outside > 0 && inside > 0 && std::abs(outside / inside - 1) > apart)
    say(out.notes, "out of place {} and in place {} differ at the peak: repeat the test", rate_text(outside),
        rate_text(inside));
}

void add_notes(const Bandwidths& measured, const SizeRow& peak, Answer& out) {
  constexpr double nearly = 0.95;
  if (measured.repeated) out.notes.emplace_back("sizes were measured several times: the best of each counts");
  if (measured.average_busbw && *measured.average_busbw * giga < nearly * peak.busbw())
    say(out.notes,
        "the printed average, {:g} GB/s, is over all sizes: it says how small the smallest size was, not "
        "how good the network is",
        *measured.average_busbw);
  const std::int64_t end = measured.rows.back().bytes;
  if (!measured.average_busbw && measured.failure.empty() && measured.last_bytes / 2 >= end)
    say(out.notes, "the sizes end at {} of {}: the test hung, was stopped, or the rest of its output is missing",
        print_bytes_exact(end), print_bytes_exact(measured.last_bytes));
  if (measured.split) out.notes.emplace_back("NCCL_TESTS_SPLIT: busbw is that of one group");
  if (measured.devices_cut) out.notes.emplace_back("the list of devices was cut: there may be more ranks and nodes");
  if (!measured.wrong_is_a_count)
    out.notes.emplace_back("before nccl-tests 2.13 the column `error` is the largest difference: 5e-07 is right");
}

void add_facts(const Bandwidths& measured, const std::string& collective, Answer& out) {
  if (!measured.flavour.empty()) out.fact("flavour", measured.flavour);
  out.fact("test", shape_of(measured, collective));
  if (!measured.columns.empty()) {
    out.fact("columns",
             fmt::format("{}, {}", join(measured.columns, " "),
                         measured.wrong_is_a_count ? "#wrong (a count)" : "error (largest difference, not a count)"));
  }
  if (!measured.nccl.empty()) out.fact("nccl", measured.nccl);
  out.fact("ranks", measured.ranks > 0 ? Value(measured.ranks) : Value("unknown"));
  const auto hosts = std::ssize(measured.hosts);
  if (hosts > 0) out.fact("hosts", hosts);
  if (hosts > 1 && measured.ranks % hosts == 0) out.fact("gpus_per_host", measured.ranks / hosts);
  if (!measured.gpu.empty()) out.fact("gpu", measured.gpu);
}

Value rows_of(const Bandwidths& measured) {
  Value rows = Value::array();
  for (const SizeRow& row : measured.rows) {
    rows.push_back({{"bytes", row.bytes},
                    {"seconds", row.seconds()},
                    {"algbw_bytes_per_s", row.algbw()},
                    {"busbw_bytes_per_s", row.busbw()}});
  }
  return rows;
}

void add_next(const Bandwidths& measured, const std::vector<const SizeRow*>& found, const std::string& collective,
              const std::optional<config::Hardware>& hardware, Answer& out) {
  const SizeRow& last = measured.rows.back();
  if (!found.empty()) {
    say(out.next, "mpirun -np {} ./harness sweep configs/collectives.yaml -b {} -e {} -f 2",
        measured.ranks > 0 ? std::to_string(measured.ranks) : "RANKS", nccl_size(found.front()->bytes / 2),
        nccl_size(found.back()->bytes * 2));
  }
  if (measured.hosts.size() > 1)
    out.next.emplace_back(
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING YOUR_COMMAND > nccl.log; ./harness read nccl.log");
  if (hardware && collective == "all_reduce" && measured.ranks > 1 && !measured.split) {
    say(out.next, "./harness doctor --allreduce {} --hardware {} --ranks {}", size_option(last.bytes),
        shell_word(hardware->file), measured.ranks);
  }
}

constexpr const char* name_the_cause = "NCCL_DEBUG=INFO YOUR_COMMAND > nccl.log; ./harness read nccl.log";

}  // namespace

Answer answer_of(Bandwidths measured, const Gaps& gaps) {
  Answer out = Answer::of("bandwidths", measured.kind);
  if (measured.ranks == 0) measured.ranks = gaps.ranks;
  if (measured.rows.empty()) {
    add_facts(measured, measured.test, out);
    out.problem("the test broke off before its first size: " + measured.failure, "NCCL's log names the cause");
    out.next.emplace_back(name_the_cause);
    return out;
  }
  const bool osu = measured.kind != "nccl-tests";
  const auto of_osu =
      mapped("allreduce=all_reduce|allgather=all_gather|all-to-all=alltoall|bcast=broadcast", measured.test);
  const std::string collective = osu ? of_osu.value_or(measured.test) : measured.collective();
  if (osu) {  // OSU prints no busbw, and for some collectives the size of one rank's part
    const bool of_each = is_one_of("all_gather|alltoall|gather|scatter", collective);
    const double factor = (of_each ? static_cast<double>(measured.ranks) : 1) * bus_factor(collective, measured.ranks);
    for (SizeRow& row : measured.rows)
      if (factor > 0) row.out_of_place.busbw = row.out_of_place.algbw.value_or(0) * factor;
  }
  const auto hardware = hardware_of(measured.gpu, gaps);
  const bool has_bus = std::ranges::any_of(measured.rows, [](const SizeRow& row) { return row.busbw() > 0; });
  const auto by = [&](const SizeRow& row) { return has_bus ? row.busbw() : row.algbw(); };
  const SizeRow& peak = *std::ranges::max_element(measured.rows, {}, by);
  const auto sized = std::ranges::find_if(measured.rows, [](const SizeRow& row) { return row.bytes > 0; });
  const SizeRow& smallest = sized == measured.rows.end() ? measured.rows.front() : *sized;
  const std::vector<const SizeRow*> found = holes(measured);

  const std::string named = collective.empty() ? "unknown collective" : collective;
  const char* word = has_bus ? "busbw" : "algbw";
  out.headline = fmt::format("peak {:.{}f} GB/s {} ({}, {}){}", by(peak) / giga, by(peak) < 100 * giga ? 1 : 0, word,
                             osu ? measured.test : named, print_bytes_exact(peak.bytes), place_text(measured));
  add_facts(measured, collective, out);
  out.fact(has_bus ? "peak_busbw" : "algbw", fmt::format("{} at {} B", rate_text(by(peak)), peak.bytes));
  if (measured.average_busbw) out.fact("avg_busbw", *measured.average_busbw);
  if (has_bus) add_holes(found, out);
  if (!measured.environment.empty()) out.fact("env", join(measured.environment, " "));
  add_wrong(measured, out);

  out.tell("peak", fmt::format("{} {} at {}", rate_text(by(peak)), word, print_bytes_exact(peak.bytes)));
  if (has_bus) add_limit(measured, collective, peak, hardware, out);
  if (has_bus && hardware && !measured.hosts.empty() && !measured.split) {
    const std::string published = analysis::published_busbw(hardware->gpu_file(), std::ssize(measured.hosts),
                                                            collective, peak.bytes, peak.busbw());
    if (!published.empty()) out.tell("published", published);
  }
  const auto half = std::ranges::find_if(measured.rows, [&](const SizeRow& row) { return by(row) >= by(peak) / 2; });
  if (half != measured.rows.begin()) out.tell("half of it", "from " + print_bytes_exact(half->bytes) + " on");
  constexpr std::int64_t latency_bytes = 1 << 16;  // above it the transfer time dominates
  if (smallest.seconds() > 0) {
    out.tell(smallest.bytes <= latency_bytes ? "latency" : "smallest size",
             fmt::format("{} at {}", seconds_text(smallest.seconds()), print_bytes_exact(smallest.bytes)));
    out.fact("latency_s", smallest.seconds());
  }
  add_odd_places(measured, peak, out);
  if (!measured.failure.empty()) {
    out.headline += "; the test broke off behind " + print_bytes_exact(measured.rows.back().bytes);
    out.problems.push_back(measured.failure + ": NCCL's log names the cause");
    out.next.emplace_back(name_the_cause);
  }
  if (osu && measured.ranks == 0 && !collective.starts_with("sendrecv")) {
    out.headline = fmt::format("{} {} at {}; ranks are not in this output: busbw needs them (--set ranks=N)",
                               rate_text(by(peak)), word, print_bytes_exact(peak.bytes));
    out.problems.emplace_back("the number of ranks is unknown: --set ranks=N");
    out.next.emplace_back("./harness read FILE --set ranks=N");
  }
  add_notes(measured, peak, out);
  add_next(measured, found, collective, hardware, out);
  out.fact("by_size", rows_of(measured));
  return out;
}

Answer answer_of_single_ranks(const std::vector<Bandwidths>& runs) {
  Answer out = Answer::of("bandwidths", "nccl-tests");
  out.headline = "nothing was measured: busbw is 0 because each process was alone";
  std::set<std::string> hosts;
  std::int64_t alone = 0;  // two interleaved outputs look like one run
  for (const Bandwidths& run : runs) {
    alone += run.first_ranks;
    hosts.insert(run.hosts.begin(), run.hosts.end());
  }
  out.fact("ranks", and_list(std::vector<std::string>(runs.size(), "1")));
  out.fact("hosts", std::ssize(hosts));
  say(out.problems, "{0} tests of one rank each, not one of {0}: built without MPI=1, or started without its mpirun",
      alone);
  out.next.emplace_back("make MPI=1 MPI_HOME=/path/to/mpi NCCL_HOME=/path/to/nccl     # in nccl-tests");
  return out;
}

std::vector<std::pair<std::string, std::string>> compared(const Bandwidths& first, const Bandwidths& second) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const SizeRow& a : first.rows) {
    const auto b = std::ranges::find(second.rows, a.bytes, &SizeRow::bytes);
    if (b == second.rows.end()) continue;
    const bool bus = a.busbw() > 0 && b->busbw() > 0;
    const double before = bus ? a.busbw() : a.algbw(), after = bus ? b->busbw() : b->algbw();
    if (before <= 0) continue;
    lines.emplace_back(print_bytes_exact(a.bytes), fmt::format("{} -> {}  {}", rate_text(before), rate_text(after),
                                                               signed_percent(after / before - 1, 1)));
  }
  constexpr std::size_t most = 6;
  const std::size_t step = (lines.size() + most - 1) / most;
  std::vector<std::pair<std::string, std::string>> some;
  for (std::size_t i = 0; i < lines.size(); ++i) {  // includes the largest size
    if ((lines.size() - 1 - i) % step == 0) some.emplace_back("before, " + lines[i].first, lines[i].second);
  }
  return some;
}

}  // namespace harness::evidence
