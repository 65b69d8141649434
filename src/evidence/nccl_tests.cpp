#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "evidence/bandwidths.h"
#include "evidence/input.h"

// Formats: nccl-tests 2.0 to 2.19 (src/common.cu), rccl-tests. Up to 2.12 a row has only the columns of its collective
// and ends in `error` (`res` until 2018), the largest difference. Since 2.13 all rows have `redop root` and end in
// `#wrong`, a count.

namespace harness::evidence {
namespace {

constexpr double micro = 1e-6;
constexpr std::size_t most_rows = 4096, most_runs = 256, most_hosts = 1u << 16;

constexpr std::array<std::string_view, 10> tests = {"all_reduce", "all_gather",     "alltoall",  "broadcast",
                                                    "gather",     "reduce_scatter", "hypercube", "reduce",
                                                    "scatter",    "sendrecv"};

// Returns the name of a GPU without the vendor, which every name has.
std::string gpu_name(std::string_view text) {
  text = trim(text);
  if (text.starts_with("NVIDIA ")) text.remove_prefix(7);
  return std::string(text.substr(0, 64));
}

// Values are numbers, "nan", or null if nothing was checked.
std::optional<double> measured(const Json& direction, const char* key, double unit) {
  constexpr double none = -1;
  const double value = number_at(direction, key, none);
  return value < 0 ? std::nullopt : std::optional<double>(value * unit);
}

Direction direction_of(const Json& direction) {
  Direction out{measured(direction, "time", micro), measured(direction, "alg_bw", giga),
                measured(direction, "bus_bw", giga), measured(direction, "nwrong", 1)};
  if (!out.seconds) out.seconds = measured(direction, "cpu_time", micro);
  return out;
}

}  // namespace

double SizeRow::seconds() const {
  const double out = out_of_place.seconds.value_or(0), in = in_place.seconds.value_or(0);
  if (out <= 0 || in <= 0) return std::max(out, in);
  return std::min(out, in);
}

std::string test_in(std::string_view text) {
  for (const std::string_view test : tests) {
    for (std::size_t at = text.find(test); at != std::string_view::npos; at = text.find(test, at + 1)) {
      const std::string_view rest = text.substr(at + test.size());
      const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
      if (begins && rest.starts_with("_perf")) return std::string(test);
    }
  }
  return "";
}

double bus_factor(std::string_view collective, std::int64_t ranks) {
  if (ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  if (collective == "all_reduce") return 2 * (n - 1) / n;
  if (collective == "broadcast" || collective == "reduce" || collective == "sendrecv") return 1;
  return std::ranges::find(tests, collective) == tests.end() ? 0 : (n - 1) / n;
}

std::string Bandwidths::collective() const {
  if (!test.empty() || ranks < 2) return test;
  const bool reduces = !redop.empty() && redop != "none";
  const bool rooted = as_number(root).value_or(-1) >= 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->algbw() <= 0 || row->busbw() <= 0) continue;
    const double ratio = row->busbw() / row->algbw();
    const auto near = [&](double factor) { return std::abs(ratio / factor - 1) < 0.01; };
    const bool checked = row->in_place.wrong.has_value(), only_outside = !checked && row->out_of_place.wrong;
    // sendrecv_perf prints a redop too, and never checks in place. On two ranks its busbw is that of an all-reduce.
    const bool pairwise = ranks == 2 && only_outside && row->in_place.busbw;
    if (near(bus_factor("all_reduce", ranks)) && !rooted && !pairwise && (reduces || ranks > 2)) return "all_reduce";
    if (near(bus_factor("all_gather", ranks)) && !rooted) {
      if (reduces) return "reduce_scatter";
      if (only_outside) return "alltoall";
      return checked ? "all_gather" : "";
    }
    if (!near(1)) return "";
    if (rooted) return reduces ? "reduce" : "broadcast";
    return only_outside ? "sendrecv" : "";
  }
  return "";
}

void Bandwidths::keep_best() {
  std::ranges::stable_sort(rows, [](const SizeRow& a, const SizeRow& b) {
    return std::pair(a.bytes, -a.busbw()) < std::pair(b.bytes, -b.busbw());
  });
  const auto same_size = [](const SizeRow& a, const SizeRow& b) { return a.bytes == b.bytes; };
  // Sizes too small to be divided among the ranks are all printed as 0.
  const auto recurs = [&](const SizeRow& a, const SizeRow& b) { return a.bytes > 0 && same_size(a, b); };
  repeated = std::ranges::adjacent_find(rows, recurs) != rows.end();
  double wrong = 0;  // includes rows that are left out
  for (const SizeRow& row : rows) wrong += row.out_of_place.wrong.value_or(0) + row.in_place.wrong.value_or(0);
  if (wrong_is_a_count) out_of_bounds = std::max(out_of_bounds, static_cast<std::int64_t>(std::min(wrong, 1e15)));
  rows.erase(std::unique(rows.begin(), rows.end(), same_size), rows.end());
}

void Bandwidths::complete() {
  if (first_ranks < 2 && largest_rank >= ranks && largest_rank < (1 << 24)) {
    ranks = largest_rank + 1;
    hosts.clear();
    devices_cut = true;
  }
  if (ranks > 0 || rows.empty() || redop.empty() || redop == "none" || (!test.empty() && test != "all_reduce")) return;
  const SizeRow& row = *std::ranges::max_element(rows, {}, &SizeRow::busbw);
  const double ratio = row.algbw() > 0 ? row.busbw() / row.algbw() : 0, n = 2 / (2 - ratio);
  constexpr double above_one = 1.02, digits = 0.01 * giga;  // rounding of both printed bandwidths
  if (ratio < above_one || ratio >= 2) return;
  test = "all_reduce";
  if (n * n / 2 * ratio * (digits / row.algbw() + digits / row.busbw()) > 1) return;
  ranks = std::llround(n);
  devices_cut = true;
}

void NcclTestsReader::begin() {
  if (runs_.size() >= most_runs) return;
  runs_.emplace_back();
  hosts_.clear();
  runs_.back().nccl = nccl_;
  runs_.back().test = named_test_;  // from the command or header before it
  runs_.back().flavour = rccl_ ? "rccl-tests" : "";
  open_ = true;
}

void NcclTestsReader::line(const Line& line) {
  std::string_view text = trim(line.text);
  // "n1: Test NCCL failure common.cu:954 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '"
  if (const std::size_t at = std::min(text.find("Test NCCL failure "), text.find("Test CUDA failure "));
      at != std::string_view::npos) {
    if (runs_.empty()) begin();
    if (runs_.back().failure.empty()) runs_.back().failure = text.substr(at, 160);
    return;
  }
  text = trim(text.substr(0, text.find(" | ")));  // another table may stand beside it
  if (text.empty()) return;
  // Web pages and mail swallow the '#'.
  const bool bare = text.starts_with("nThread ") || text.starts_with("Avg bus bandwidth") ||
                    text.starts_with("Out of bounds values") ||
                    (text.starts_with("Rank ") && contains(text, " Pid ")) ||
                    (text.starts_with("size ") && contains(text, " busbw "));
  if (text.starts_with('#') || bare) {
    header(text);
  } else if (text[0] >= '0' && text[0] <= '9') {
    row(text);
  } else if (text.starts_with("rccl-tests: Version")) {
    rccl_ = true;
    if (open_) runs_.back().flavour = "rccl-tests";
  } else if (text.find("_perf") != std::string_view::npos) {
    if (const std::string test = test_in(text); !test.empty()) named_test_ = test;
  }
}

void NcclTestsReader::header(std::string_view text) {
  Cursor c{text};
  c.literal("#");
  c.skip_blanks();
  const std::string_view rest = c.rest;
  if (rest.starts_with("nccl-tests version ")) {
    if (const auto code = integer_after(rest, "nccl-library="); code && *code > 0)
      nccl_ = fmt::format("{}.{}.{}", *code / 10000, *code / 100 % 100, *code % 100);
    if (open_) runs_.back().nccl = nccl_;
  } else if (rest.starts_with("Collective test starting: ")) {
    named_test_ = test_in(rest);
  } else if (rest.starts_with("nThread ")) {
    begin();
    runs_.back().last_bytes = integer_after(rest, "maxBytes ").value_or(0);
  } else if (rest.starts_with("Rank ") || rest.starts_with("Rank\t")) {
    device(rest);
  } else if (rest == "...") {
    if (open_) runs_.back().devices_cut = true;
  } else if (rest.starts_with("Out of bounds values")) {
    if (open_) runs_.back().out_of_bounds = integer_after(rest, ":").value_or(-1);
  } else if (rest.starts_with("Avg bus bandwidth")) {
    if (open_) runs_.back().average_busbw = number_after(rest, ":");
    open_ = false;
  } else if (rest.starts_with("out-of-place") || rest.starts_with("in-place")) {
    first_is_in_place_ = rest.starts_with("in-place");
  } else if (rest.starts_with("size ") || rest.starts_with("bytes ")) {
    columns(words_of(rest));
  }
}

// "size count type redop root", then "time algbw busbw #wrong" for each direction.
void NcclTestsReader::columns(const std::vector<std::string_view>& words) {
  const auto is_time = [](std::string_view word) { return word == "time" || word == "cputime"; };
  const auto time = std::ranges::find_if(words, is_time);
  const auto place_of = [&](std::string_view names) {
    const auto found = std::find_if(words.begin(), time, [&](std::string_view word) { return is_one_of(names, word); });
    return found == time ? 0 : static_cast<std::size_t>(found - words.begin());
  };
  width_ = words.size();
  first_ = static_cast<std::size_t>(time - words.begin());
  directions_ = static_cast<std::size_t>(std::ranges::count_if(words, is_time));
  redop_ = place_of("redop|op");
  root_ = place_of("root");
  if (!open_) begin();
  runs_.back().columns.assign(words.begin(), time);
  if (std::ranges::any_of(words, [](std::string_view word) { return word == "error" || word == "res"; }))
    runs_.back().wrong_is_a_count = false;
}

// "Rank  0 Group  0 Pid   2001 on    h100-01 device  0 [0x1b] NVIDIA H100 80GB HBM3"
void NcclTestsReader::device(std::string_view text) {
  const auto rank = integer_after(text, "Rank ");
  Cursor c{text};
  if (!rank || !c.after(" on ")) return;
  c.skip_blanks();
  const std::string host(c.word());
  if (!c.after(" device ")) return;
  if (!open_) begin();
  Bandwidths& run = runs_.back();
  if (run.gpu.empty() && c.after("]")) run.gpu = gpu_name(c.rest);  // new rccl-tests print no name behind the address
  ++run.ranks;
  run.largest_rank = std::max(run.largest_rank, *rank);
  if (*rank == 0) ++run.first_ranks;
  if (integer_after(text, "Group ").value_or(0) > 0) run.split = true;
  if (run.hosts.size() < most_hosts && hosts_.insert(host).second) run.hosts.push_back(host);
}

void NcclTestsReader::row(std::string_view text) {
  std::string plain = replaced(without_inner_prefixes(text), {{',', "."}});  // spreadsheets write decimal commas
  std::vector<std::string_view> words = words_of(plain);
  if (directions_ == 0) {  // people leave the header out: the columns since 2.13
    const std::vector<std::string_view> usual =
        words_of("size count type redop root time algbw busbw #wrong time algbw busbw #wrong");
    if (words.size() != usual.size() || as_number(words[2]) || as_number(words[3]) || !as_number(words[11])) return;
    columns(usual);
  }
  if (runs_.back().rows.size() >= most_rows) return;
  const std::size_t each = (width_ - first_) / directions_;
  if (!begun_.empty() && (words.size() == each || words.size() + first_ == width_)) {
    plain = begun_ + ' ' + plain;
    words = words_of(plain);
  }
  begun_.clear();
  if (words.size() < width_ && (words.size() == first_ || words.size() == first_ + each)) {
    begun_ = plain;
    return;
  }
  // Before 2.13 the redop column of an all-to-all is blank.
  const std::size_t blank = redop_ > 0 && words.size() + 1 == width_ && as_number(words[redop_]) ? 1 : 0;
  if (words.size() + blank < width_) return;
  SizeRow row;
  const auto size = as_number(words[0]);
  if (!size || *size < 0 || *size > 1e18) return;
  row.bytes = static_cast<std::int64_t>(*size);
  for (std::size_t i = 0; i < directions_; ++i) {
    const auto value = [&](std::size_t column, double unit) -> std::optional<double> {
      const auto number = column < each ? as_number(words[first_ + i * each + column - blank]) : std::nullopt;
      return number ? std::optional(*number * unit) : std::nullopt;
    };
    Direction& direction = (i == 0) == first_is_in_place_ ? row.in_place : row.out_of_place;
    direction = {value(0, micro), value(1, giga), value(2, giga), value(3, 1)};
    if (!direction.seconds) return;
  }
  Bandwidths& run = runs_.back();
  const std::string_view redop = redop_ > 0 && blank == 0 ? words[redop_] : "none";
  if (run.rows.empty() && redop_ > 0) run.redop = redop;
  if (run.rows.empty() && root_ > 0) run.root = words[root_ - blank];
  run.rows.push_back(row);
}

std::vector<Bandwidths> NcclTestsReader::finish() {
  for (Bandwidths& run : runs_) {
    if (run.test.empty() && runs_.size() == 1) run.test = named_test_;
    if (run.test.empty()) run.test = test_in(file_);
    run.keep_best();
    run.complete();
  }
  const auto says = [](const Bandwidths& run) { return !run.rows.empty() || !run.failure.empty(); };
  if (!runs_.empty() && runs_.back().ranks > 0 && std::ranges::none_of(runs_, says))
    runs_.back().failure = "it hung, was stopped, or the rest of its output is missing";
  std::erase_if(runs_, std::not_fn(says));
  return std::move(runs_);
}

// "# OSU MPI-CUDA Allreduce Latency Test v7.3", then "# Size       Avg Latency(us) …" or "# Size      Bandwidth
// (MB/s)". "# OSU MPI Multiple Bandwidth / Message Rate Test v7.3", then "# Size       MB/s        Messages/s".
// "# OSU MPI Non-blocking Allreduce Latency Test v7.3", then "# Size  Overall(us)  Compute(us)  Pure Comm.(us)
// Overlap(%)": the overall time includes computation.
void OsuReader::line(const Line& line) {
  const std::string_view text = trim(line.text);
  Cursor c{text};
  if (text.starts_with('#')) {
    if (c.after("OSU ") && c.after(" ") && (text.find(" Test") != std::string_view::npos)) {
      if (runs_.size() >= most_runs) return;
      Bandwidths run;
      run.kind = "osu micro-benchmark";
      run.test = lower(c.word());
      const bool blocks = run.test != "non-blocking";
      if (!blocks) {
        c.skip_blanks();
        run.test = lower(c.word());
      }
      value_column_ = blocks ? 1 : 0;
      bandwidth_ = contains(text, "Bandwidth");
      if (run.test == "latency" || run.test == "bandwidth") run.test = "sendrecv";
      if (run.test == "bi-directional") run.test = "sendrecv, both directions";
      if (run.test == "multiple" || run.test == "multi") run.test = "sendrecv, several pairs";
      runs_.push_back(std::move(run));
    } else if (text.starts_with("# Size")) {
      std::size_t column = 0;
      for (const std::string_view word : words_of(text)) {
        if (word.ends_with(')')) ++column;
        if (word == "Comm.(us)") value_column_ = column;
      }
    }
    return;
  }
  const std::vector<std::string_view> words = words_of(text, 8);
  if (runs_.empty() || value_column_ == 0 || words.size() <= value_column_ || runs_.back().rows.size() >= most_rows)
    return;
  const auto size = as_number(words[0]), value = as_number(words[value_column_]);
  if (!size || !value || *size < 0 || *size > 1e18 || *value <= 0) return;
  constexpr double mega = 1e6;
  SizeRow row;
  row.bytes = static_cast<std::int64_t>(*size);
  if (bandwidth_) {  // many messages in flight: gives no time of a single one
    row.out_of_place.algbw = *value * mega;
  } else {
    row.out_of_place.seconds = *value * micro;
    row.out_of_place.algbw = *size / (*value * micro);
  }
  runs_.back().rows.push_back(row);
}

std::vector<Bandwidths> OsuReader::finish() {
  std::erase_if(runs_, [](const Bandwidths& run) { return run.rows.empty(); });
  return std::move(runs_);
}

Bandwidths nccl_tests_json(const std::string& text) {
  const Json json = parse_json(text);
  Bandwidths out;
  for (const Json& word : at(json, "args")) {
    if (word.is_string() && out.test.empty()) out.test = test_in(word.get_ref<const std::string&>());
  }
  for (const Json& entry : at(json, "env")) {
    if (entry.is_string() && is_of_interest(entry.get_ref<const std::string&>()))
      out.environment.push_back(entry.get<std::string>());
  }
  if (const auto code = static_cast<std::int64_t>(std::clamp(number_at(json, "nccl_version"), 0.0, 1e9)); code > 0)
    out.nccl = fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
  // The program lists the devices within its configuration, but only the first one of each process.
  const Json& config = at(json, "config");
  std::set<std::string> seen, processes;
  for (const Json& device : at(at(config, "devices").is_array() ? config : json, "devices")) {
    const std::string host = text_at(device, "hostname");
    if (seen.insert(host).second) out.hosts.push_back(host);
    processes.insert(fmt::format("{} {}", text_at(device, "pid"), host));
    ++out.ranks;
    if (number_at(device, "rank") == 0) ++out.first_ranks;
    if (number_at(device, "group") > 0) out.split = true;
    if (out.gpu.empty()) out.gpu = gpu_name(text_at(device, "device_info"));
  }
  const double each = std::clamp(number_at(config, "nthreads", 1) * number_at(config, "ngpus", 1), 1.0, 1024.0);
  out.ranks = std::max(out.ranks, std::ssize(processes) * static_cast<std::int64_t>(each));
  for (const Json& result : at(json, "results")) {
    SizeRow row;
    row.bytes = static_cast<std::int64_t>(std::clamp(number_at(result, "size"), 0.0, 1e18));
    row.out_of_place = direction_of(at(result, "out_of_place"));
    row.in_place = direction_of(at(result, "in_place"));
    if (out.rows.empty()) out.redop = text_at(result, "redop");
    if (out.rows.empty()) out.root = text_at(result, "root");
    if (row.seconds() > 0) out.rows.push_back(row);
  }
  const Json& average = at(json, "average_bus_bandwidth");
  if (at(average, "bandwidth").is_number()) out.average_busbw = number_at(average, "bandwidth");
  if (out.rows.empty()) fail("it holds no results");
  out.keep_best();
  return out;
}

}  // namespace harness::evidence
