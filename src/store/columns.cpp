#include "store/columns.h"

#include <limits>
#include <type_traits>

#include "config/model.h"

namespace harness::store {
namespace {

// Tables that are written while blocks run have rows of a power of two bytes (TextSize::stretch).
constexpr TextSize reason_size{512, true}, throttling_size{96, true}, host_size{64, true};

constexpr double most_of_anything = 0x1p62;
constexpr double most_nodes_and_ranks = 1 << 20, most_steps = 4096, most_rounds = 10000;
constexpr double most_in_row = std::numeric_limits<std::int32_t>::max();
constexpr Bounds whole = between(0, most_of_anything), index_in_program = between(-1, most_in_row),
                 yes_or_no = between(0, 1), any_square{0, std::numeric_limits<double>::infinity(), nullptr, true};
constexpr Bounds of_cases = index_of(&Counts::cases), of_ranks = index_of(&Counts::ranks);

}  // namespace

void list_columns(Columns<Result>& c) {
  using R = Result;
  c.text("name", &R::name);
  c.text("backend", &R::backend);
  c.text("stands_for", &R::stands_for).optional = true;
  c.text("config_path", &R::config_path);
  c.number("ranks", &R::ranks, between(0, most_nodes_and_ranks));
  c.number("nodes", &R::nodes, between(0, most_nodes_and_ranks));
  c.number("rounds", &R::rounds, between(0, most_rounds));
  c.number("warmup_steps", &R::warmup_steps, between(0, most_steps));
  c.number("steps", &R::steps, between(0, most_steps));
  c.number("seed", &R::seed, {});
  c.number("smallest_effect", &R::smallest_effect, known_amount);
  c.text("interval", &R::interval).optional = true;
  c.number("confidence", &R::confidence, between(0, 1)).optional = true;
  c.text("looks", &R::looks).optional = true;
  c.text("extended", &R::extended).optional = true;
  c.text(
      "model_name", [](R & r) -> auto& { return r.model.name; });
  config::Model any;
  config::each_key(any, [&]<class Value>(const config::ModelKey& wanted, Value& /*value*/) {
    const auto access = [name = std::string_view(wanted.name)](R& r) -> Value& {
      Value* found = nullptr;
      config::each_key(r.model, [&](const config::ModelKey& key, auto& value) {
        if constexpr (std::is_same_v<decltype(value), Value&>) {
          if (name == key.name) found = &value;
        }
      });
      return *found;
    };
    if constexpr (std::is_enum_v<Value>) {
      c.word(wanted.name, access, config::words_of(config::words_for(Value{})));
    } else {
      c.number(wanted.name, access, known_amount);  // config::why_impossible() checks the model as a whole
    }
    c.list.back().optional = !wanted.first_models;
  });
  c.text("peak_source", &R::peak_source);
  c.text("flop_formula", &R::flop_formula);
  c.number("memory_bytes_per_s", &R::memory_bytes_per_s, known_amount).optional = true;
  c.text("link_source", &R::link_source).optional = true;
}

void list_columns(Columns<std::pair<std::string, std::string>>& c) {
  using R = std::pair<std::string, std::string>;
  c.text("name", &R::first);
  c.text("value", &R::second);
}

void list_columns(Columns<ResultRank>& c) {
  using R = ResultRank;
  c.number("rank", &R::rank, of_ranks);
  c.number("local_rank", &R::local_rank, of_ranks);
  c.number("node", &R::node, index_of(&Counts::nodes));
  c.text("host", &R::host);
  c.text("device", &R::device);
  c.number("cores", &R::cores, between(0, most_nodes_and_ranks));
  c.number("threads", &R::threads, between(0, most_nodes_and_ranks));
  c.number("memory_bytes", &R::memory_bytes, amount);
}

void list_columns(Columns<ResultCase>& c, const std::vector<std::string>& variables) {
  using R = ResultCase;
  c.key("case");
  c.text("name", &R::name);
  c.text("variable", &R::variable);
  c.text("value", &R::value);
  c.number("reference", &R::reference, of_cases).optional = true;
  c.word("status", &R::status, words_to(CaseStatus::impossible));
  c.number("ranks_used", &R::ranks, up_to(&Counts::ranks));
  for (const program::Axis axis : program::visible_axes) {
    c.number(
        program::row_of(axis).key, [axis](R& row) -> std::int32_t& { return row.layout[axis]; },
        between(1, most_in_row));
  }
  c.number("micro_batches", &R::micro_batches, between(0, most_in_row));
  c.number("tokens_per_step", &R::tokens_per_step, amount);
  c.number("model_flop_per_step", &R::model_flop_per_step, amount);
  c.number("noncausal_flop_per_step", &R::noncausal_flop_per_step, amount);
  c.number("hardware_flop_per_step", &R::hardware_flop_per_step, amount);
  c.number("goodput", &R::goodput, between(0, 1)).optional = true;
  c.number("peak_flops_per_rank", &R::peak_flops_per_rank, amount);
  c.number("planned_memory_bytes", &R::planned_memory_bytes, amount);
  c.text("program_hash", &R::program_hash, {32});
  for (std::size_t i = 0; i < variables.size(); ++i) {
    c.text(variables[i], [i](R& row) -> std::string& { return row.settings.at(i); });
  }
  c.text("reason", &R::reason, reason_size);
}

void list_columns(Columns<ResultRole>& c) {
  using R = ResultRole;
  c.number("case", &R::case_index, of_cases);
  c.number("rank", &R::rank, of_ranks);
  c.number("role", &R::role, of_ranks);
  for (const program::Axis axis : program::visible_axes) {
    c.number(
        program::name_of(axis), [axis](R& row) -> std::int32_t& { return row.at[axis]; }, of_ranks);
  }
  c.number("node", &R::node, index_or_none(&Counts::nodes)).optional = true;
}

void list_columns(Columns<ResultBlock>& c) {
  using R = ResultBlock;
  c.key("block");
  c.number("round", &R::round, between(0, most_rounds));
  c.number("position", &R::position, up_to(&Counts::cases));
  c.number("case", &R::case_index, of_cases);
  c.word("status", &R::status, words_to(BlockStatus::left_out));
  c.number("session", &R::session, {-1, 0, &Counts::sessions});
  c.number("process", &R::process, index_or_none(&Counts::blocks)).optional = true;
  c.number("start_unix_s", &R::start_unix_s, amount);
  c.number("setup_s", &R::setup_s, amount);
  c.number("total_s", &R::total_s, amount).optional = true;
  c.number("first_step_s", &R::first_step_s, amount);
  c.number("timed_total_s", &R::timed_total_s, amount);
  c.number("peak_memory_bytes", &R::peak_memory_bytes, amount);
  c.number("peak_memory_rank", &R::peak_memory_rank, {-1, 0, &Counts::ranks});
  c.number("skipped_steps", &R::skipped_steps, between(0, most_steps)).optional = true;
  c.text("reason", &R::reason, reason_size);
}

void list_columns(Columns<ResultGpu>& c) {
  using R = ResultGpu;
  const auto measured = [&c](const char* name, double machine::GpuStatistics::*member) {
    c.number(
        name, [member](R& row) -> double& { return row.together.*member; }, amount);
  };
  using Statistics = machine::GpuStatistics;
  c.key("block");
  c.number("ranks", &R::ranks, up_to(&Counts::ranks));
  measured("utilisation", &Statistics::mean_utilisation);
  measured("sm_clock_hz", &Statistics::mean_sm_clock_hz);
  measured("min_sm_clock_hz", &Statistics::min_sm_clock_hz);
  measured("max_sm_clock_hz", &Statistics::max_possible_sm_clock_hz);
  measured("power_w", &Statistics::mean_power_w);
  measured("temperature_c", &Statistics::max_temperature_c);
  measured("memory_used_bytes", &Statistics::max_memory_used_bytes);
  measured("energy_j", &Statistics::energy_j);
  c.text("throttling", &R::throttling, throttling_size);
}

void list_columns(Columns<machine::Conditions>& c) {
  using R = machine::Conditions;
  c.key("block");
  c.number("steal_share", &R::steal_share, amount);
  c.number("foreign_cores", &R::foreign_cores, amount);
  c.text("busiest_host", &R::busiest_host, host_size);
}

void list_columns(Columns<ResultInterval>& c) {
  using R = ResultInterval;
  c.number("case", &R::case_index, of_cases);
  c.number("role", &R::role, of_ranks);
  c.number("rank", &R::rank, of_ranks);
  c.number("operation", &R::operation, index_in_program);
  // As long as the longest existing names (a test checks it), so that a row has 128 bytes instead of 256.
  c.text("kind", &R::kind, {22});
  c.text("stream", &R::stream, {10});
  c.text("phase", &R::phase, {13});
  c.number("micro_batch", &R::micro_batch, index_in_program);
  c.number("layer", &R::layer, index_in_program);
  c.number("start_s", &R::start_s, moment);
  c.number("end_s", &R::end_s, known_amount);
  c.number("recomputed", &R::recomputed, yes_or_no).optional = true;
  c.number("waiting_s", &R::waiting_s, amount).optional = true;
  c.number("bubble_s", &R::bubble_s, amount).optional = true;
  c.text("what", &R::what, {23, true});
}

void list_columns(Columns<ResultTotal>& c) {
  using R = ResultTotal;
  c.number("case", &R::case_index, of_cases);
  c.number("rank", &R::rank, of_ranks);
  c.text("kind", &R::kind, {24});
  c.text("stream", &R::stream, {16});
  c.number("seconds", &R::seconds, amount);
  c.number("operations", &R::operations, whole);
}

void list_columns(Columns<ResultSplit>& c) {
  using R = ResultSplit;
  c.number("case", &R::case_index, of_cases);
  c.number("rank", &R::rank, of_ranks);
  c.number("step_s", &R::step_s, known_amount);
  c.number("compute_s", &R::compute_s, known_amount);
  c.number("communication_s", &R::communication_s, known_amount);
  c.number("exposed_s", &R::exposed_s, known_amount);
  c.number("overlapped_s", &R::overlapped_s, known_amount);
  c.number("idle_s", &R::idle_s, known_amount);
  c.number("loading_s", &R::loading_s, amount).optional = true;
  c.number("waiting_s", &R::waiting_s, amount).optional = true;
  c.number("bubble_s", &R::bubble_s, amount).optional = true;
}

void list_columns(Columns<ResultOperations>& c) {
  using R = ResultOperations;
  c.number("case", &R::case_index, of_cases);
  c.number("role", &R::role, of_ranks);
  c.text("kind", &R::kind);
  c.text("stream", &R::stream);
  c.text("phase", &R::phase);
  c.text("what", &R::what);
  c.number("recomputed", &R::recomputed, yes_or_no);
  c.text("group", &R::group);
  c.number("operations", &R::operations, whole);
  c.number("model_flop", &R::model_flop, amount);
  c.number("bytes", &R::bytes, amount);
  c.number("limit_s", &R::limit_s, amount);
}

void list_columns(Columns<ResultGradient>& c) {
  using R = ResultGradient;
  c.number("case", &R::case_index, of_cases);
  c.number("sharded_squares", &R::sharded_squares, any_square);
  c.number("replicated_squares", &R::replicated_squares, any_square);
}

void list_columns(Columns<ResultNcclCall>& c) {
  using R = ResultNcclCall;
  constexpr double most_channels = 1024;  // NCCL has at most 64
  c.number("case", &R::case_index, of_cases);
  c.text("function", &R::function);
  c.number("bytes", &R::bytes, whole);
  c.text("algorithm", &R::algorithm);
  c.text("protocol", &R::protocol);
  c.number("first_channel", &R::first_channel, between(-1, most_channels));
  c.number("last_channel", &R::last_channel, between(-1, most_channels));
  c.number("calls", &R::calls, whole);
}

void list_columns(Columns<ResultNcclFact>& c) {
  using R = ResultNcclFact;
  c.number("case", &R::case_index, of_cases);
  c.text("name", &R::name);
  c.text("value", &R::value);
}

void list_columns(Columns<ResultPoint>& c) {
  using R = ResultPoint;
  c.number("case", &R::case_index, of_cases);
  c.text("operation", &R::operation);
  c.number("repetitions", &R::repetitions, whole);
  c.number("bytes", &R::bytes, amount);
  c.number("bus_factor", &R::bus_factor, amount);
  c.number("limit_bytes_per_s", &R::limit_bytes_per_s, amount);
  c.text("limit_source", &R::limit_source);
  c.text("uses", &R::uses).optional = true;
  c.number("count", &R::count, whole).optional = true;
}

void list_columns(Columns<ResultFinding>& c) {
  using R = ResultFinding;
  static_assert(R::no_case == -1);
  c.number("case", &R::case_index, index_or_none(&Counts::cases));
  c.text("verdict", &R::verdict);
  c.text("check", &R::check);
  c.text("where", &R::where);
  c.number("nodes", &R::nodes, between(0, most_nodes_and_ranks));
  c.text("evidence", &R::evidence);
  c.text("remedy", &R::remedy);
  c.text("docs", &R::docs);
}

}  // namespace harness::store
