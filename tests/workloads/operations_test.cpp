// Workloads of one operation: their Programs verify, their output checks find errors, their rates are those of
// nccl-tests, and their limits follow from the links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "config/registry.h"
#include "gpt_jobs.h"
#include "program/count.h"
#include "program/links.h"
#include "support/errors.h"
#include "workloads/operations.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;
using Kind = config::CollectiveKind;
using Over = config::CollectiveOver;

Rate rate_of(const config::Settings& settings, const program::Layout& layout) {
  return workload_of(settings).rate(settings, layout);
}

constexpr Kind every_collective[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                                     Kind::send_recv};

config::Settings collective(Kind kind, Over over = Over::world, bool in_place = true) {
  config::Settings s;
  s.workload = "collective";
  s.collective = kind;
  s.collective_over = over;
  s.in_place = in_place;
  s.message_bytes = 24 * 1024;
  s.repetitions = 3;
  return s;
}

program::Layout layout_of(int tensor, int data, int pipeline) {
  program::Layout layout;
  layout.size = {tensor, 1, data, pipeline};
  return layout;
}

TEST(Workloads, AreThoseThatAConfigurationCanName) {
  ASSERT_EQ(workloads().size(), config::workload_names.size());
  for (std::size_t i = 0; i < config::workload_names.size(); ++i)
    EXPECT_EQ(workloads()[i]->name(), config::workload_names[i]);
}

TEST(Operations, EveryCollectiveVerifiesOverEveryGroup) {
  for (const Kind kind : every_collective) {
    for (const bool in_place : {true, false}) {
      for (const auto over : {Over::world, Over::tensor, Over::data, Over::pipeline}) {
        const bool ring_of_all = kind == Kind::send_recv && over == Over::world;
        const program::Layout layout = ring_of_all ? layout_of(1, 12, 1) : layout_of(2, 3, 2);
        const program::ProgramSet set = build_programs({}, collective(kind, over, in_place), layout);
        EXPECT_EQ(texts(program::verify(set)), "") << static_cast<int>(kind) << static_cast<int>(over) << in_place;
        EXPECT_EQ(texts(program::verify(program::expand(set))), "");
      }
    }
  }
}

TEST(Operations, AStepIsItsRepetitionsAndTheClosingAllReduce) {
  for (const Kind kind : every_collective) {
    const config::Settings s = collective(kind, Over::data, false);
    const program::ProgramSet set = build_programs({}, s, layout_of(1, 4, 1));
    const program::Count c = program::count(set, set.roles[0]);
    program::Traffic sent;
    for (const auto& [key, t] : c.traffic) {
      if (key.first == "world" || key.second == "receive") continue;
      sent.messages += t.messages;
      sent.bytes += t.bytes;
    }
    EXPECT_EQ(sent.messages, s.repetitions);
    EXPECT_DOUBLE_EQ(sent.bytes, static_cast<double>(s.repetitions * s.message_bytes));
  }
}

TEST(Operations, ProductsVerifyAndCount) {
  config::Settings s;
  s.workload = "gemm";
  s.gemm = {64, 32, 48, true, false};
  s.repetitions = 5;
  for (const config::Precision p : {config::Precision::fp32, config::Precision::bf16}) {
    s.precision = p;
    const program::ProgramSet set = build_programs({}, s, layout_of(1, 2, 1));
    EXPECT_EQ(texts(program::verify(set)), "");
    EXPECT_DOUBLE_EQ(program::total_flop(set).model, 2.0 * 5 * 2 * 64 * 32 * 48);
    EXPECT_DOUBLE_EQ(workload_of(s).rate(s, set.layout).bytes,
                     (64 * 48 + 48 * 32 + 64 * 32) * (p == config::Precision::bf16 ? 2.0 : 4.0));
  }
  s.workload = "attention";
  s.attention_shape = {2, 3, 8, 16};
  for (const bool backward : {false, true}) {
    s.attention_backward = backward;
    const program::ProgramSet set = build_programs({}, s, layout_of(1, 2, 1));
    EXPECT_EQ(texts(program::verify(set)), "");
    EXPECT_DOUBLE_EQ(program::total_flop(set).noncausal, (backward ? 8.0 : 4.0) * 2 * 3 * 8 * 16 * 16 * 5 * 2);
  }
}

TEST(Operations, AttentionWhoseBytesOverflowIsRefused) {
  config::Settings s;
  s.workload = "attention";
  s.attention_shape = {1, 16, 128, 1 << 20};
  EXPECT_EQ(workload_of(s).why_impossible({}, s), "");
  s.attention_shape = {1 << 24, 16, 128, 1 << 24};
  EXPECT_THAT(workload_of(s).why_impossible({}, s), HasSubstr("sequence: 16777216} is too large"));
}

// ---- what nccl-tests calls bus bandwidth ----------------------------------------------------------------------------

TEST(Operations, BusFactorsAreThoseOfNcclTests) {
  const program::Layout eight = layout_of(1, 8, 1);
  const auto factor = [&](Kind kind) { return rate_of(collective(kind), eight).bus_factor; };
  EXPECT_DOUBLE_EQ(factor(Kind::all_reduce), 14.0 / 8);
  EXPECT_DOUBLE_EQ(factor(Kind::reduce_scatter), 7.0 / 8);
  EXPECT_DOUBLE_EQ(factor(Kind::all_gather), 7.0 / 8);
  EXPECT_DOUBLE_EQ(factor(Kind::all_to_all), 7.0 / 8);
  EXPECT_DOUBLE_EQ(factor(Kind::send_recv), 1);
  EXPECT_EQ(rate_of(config::Settings(), eight).repetitions, 0);
}

TEST(Operations, LimitsFollowFromWhatMustLeaveRankAndNode) {
  const auto limit = [](Kind kind, const program::Layout& layout, const std::vector<int>& nodes,
                        const program::Links& links, Over over = Over::world) {
    return max_bus_bandwidth(collective(kind, over), layout, nodes, links);
  };
  const std::vector<int> single(8, 0), two{0, 0, 0, 0, 1, 1, 1, 1};
  const program::Layout eight = layout_of(1, 8, 1);
  // In one node the rank's link bounds every collective, and bus bandwidth is defined so that this is its limit.
  for (const Kind kind : every_collective) {
    EXPECT_NEAR(limit(kind, eight, single, {100, 0, false, false}), 100, 1e-9);
    EXPECT_EQ(limit(kind, eight, single, {}), 0);
    EXPECT_EQ(limit(kind, eight, two, {100, 0, false, false}), 0);  // the network is not known
  }
  // Switches that reduce: each rank sends the message once.
  EXPECT_NEAR(limit(Kind::all_reduce, eight, single, {100, 0, true, false}), 175, 1e-9);
  EXPECT_NEAR(limit(Kind::all_gather, eight, single, {100, 0, true, false}), 100, 1e-9);
  // On two nodes an all-reduce must carry the whole message across once: bus bandwidth is 14/8 of the network's.
  EXPECT_NEAR(limit(Kind::all_reduce, eight, two, {1e9, 40, false, false}), 70, 1e-6);
  // Half of an all-to-all crosses, and 4 ranks share the network: bus bandwidth is 7/8 / 2 of the network's.
  EXPECT_NEAR(limit(Kind::all_to_all, eight, two, {1e9, 40, false, false}), 17.5, 1e-6);
  EXPECT_NEAR(limit(Kind::send_recv, eight, two, {1e9, 40, false, false}), 40, 1e-6);
  // Four groups of two ranks across the nodes share the network.
  EXPECT_NEAR(limit(Kind::all_reduce, layout_of(4, 2, 1), two, {1e9, 40, false, false}, Over::data), 10, 1e-6);
  // Groups within a node do not use it.
  EXPECT_NEAR(limit(Kind::all_reduce, layout_of(4, 2, 1), two, {100, 40, false, false}, Over::tensor), 100, 1e-9);
}

// The messages of a training step with two stages of 2 x 2 ranks, one stage on each of two nodes.
TEST(Operations, LeastTimesOfAStepsCommunications) {
  const config::Model model{"small", 2, 64, 4, 256, 32};
  config::Settings settings;
  settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  settings.micro_batch_size = 1;
  settings.global_batch_size = 4;
  program::Layout layout;
  layout.size = {2, 1, 2, 2};
  const program::ProgramSet set = build_programs(model, settings, layout);
  program::LeastTimes times(set, {0, 0, 0, 0, 1, 1, 1, 1}, {100, 10, false, false});
  program::LeastTimes unknown(set, {0, 0, 0, 0, 1, 1, 1, 1}, {100, 0, false, false});
  // Of the message, in s/B: 2 (2 - 1) / 2 of it leaves a tensor rank; four ranks of a stage share the node's link, as
  // do four pairs across the nodes.
  const std::map<std::string, double> expected{
      {"tensor", 1.0 / 100}, {"pipeline+1", 4.0 / 10}, {"pipeline-1", 4.0 / 10}, {"embedding", 4.0 / 10}};
  std::set<std::string> seen;
  for (int role = 0; role < 2; ++role) {
    const program::Program& program = set.roles[role];
    for (const program::Operation& op : program.step) {
      if (!program::is_communication(op.action)) {
        EXPECT_EQ(times.seconds(role, op), 0);
        continue;
      }
      const std::string to = program::destination(set, op.action);
      const auto row = expected.find(to);
      if (row == expected.end()) continue;
      seen.insert(to);
      const double seconds = program::message_bytes(program, op.action) * row->second;
      EXPECT_NEAR(times.seconds(role, op), seconds, 1e-9) << to;
      EXPECT_NEAR(unknown.seconds(role, op), to == "tensor" ? seconds : 0, 1e-9) << to;
    }
  }
  EXPECT_EQ(seen.size(), expected.size());
}

// ---- results

class Memory : public program::BufferAccess {
 public:
  explicit Memory(const program::Program& program) : program_(program) {
    for (const program::Buffer& b : program.buffers) values.emplace_back(b.count, 0.0F);
  }
  void read(const program::View& v, std::span<std::byte> to) override {
    for (std::int64_t i = 0; i < v.count; ++i) encode_element(type(v), to.data(), i, at(v)[i]);
  }
  void write(const program::View& v, std::span<const std::byte> from) override {
    for (std::int64_t i = 0; i < v.count; ++i) at(v)[i] = decode_element(type(v), from.data(), i);
  }
  float* at(const program::View& v) { return values[v.buffer].data() + v.offset; }
  float rounded(const program::View& v, float value) const {
    std::array<std::byte, sizeof value> bytes{};
    encode_element(type(v), bytes.data(), 0, value);
    return decode_element(type(v), bytes.data(), 0);
  }
  std::vector<std::vector<float>> values;

 private:
  program::DType type(const program::View& v) const { return program_.buffers[v.buffer].type; }
  const program::Program& program_;
};

// All ranks of a job, with a naive execution of its step: it adds in the order of `turns`, rounding each sum.
struct OperationJob {
  OperationJob(const config::Settings& s, int ranks)
      : settings(s), layout(layout_of(1, ranks, 1)), set(build_programs({}, s, layout)) {
    for (int r = 0; r < ranks; ++r) {
      memory.emplace_back(program(r));
      turns.push_back(r);
      checks.push_back(workload_of(s).output_check(s, layout, layout.coordinates(r), program(r)));
      checks.back()->prepare(memory.back());
    }
  }
  const program::Program& program(int r) const { return set.roles[set.role_of(layout.coordinates(r))]; }
  program::Action action(int r, std::size_t op) const { return program(r).step[op].action; }

  void run() {
    for (std::size_t op = 0; op < program(0).step.size(); ++op) {
      auto before = memory;
      const auto n = static_cast<std::int64_t>(memory.size());
      for (int r = 0; r < n; ++r) carry_out(before, op, r, n);
    }
  }
  void carry_out(std::vector<Memory>& before, std::size_t op, int r, std::int64_t n) {
    const program::Action mine = action(r, op);
    for (const int m : turns) {
      const program::Action theirs = action(m, op);
      Memory& from = before[m];
      Memory& to = memory[r];
      const auto sum = [&](const program::View& out, const float* in) {
        for (std::int64_t i = 0; i < out.count; ++i)
          to.at(out)[i] = m == turns[0] ? in[i] : to.rounded(out, to.at(out)[i] + in[i]);
      };
      if (const auto* a = std::get_if<program::AllReduce>(&mine); a != nullptr && a->data.count > 1) {
        const auto& b = std::get<program::AllReduce>(theirs);
        sum(a->data, from.at(b.in.present() ? b.in : b.data));
      } else if (const auto* s = std::get_if<program::ReduceScatter>(&mine)) {
        sum(s->out, from.at(std::get<program::ReduceScatter>(theirs).in) + r * s->out.count);
      } else if (const auto* g = std::get_if<program::AllGather>(&mine)) {
        const float* in = from.at(std::get<program::AllGather>(theirs).in);
        std::copy(in, in + g->in.count, to.at(g->out) + m * g->in.count);
      } else if (const auto* x = std::get_if<program::AllToAll>(&mine)) {
        const std::int64_t part = x->in.count / n;
        const float* in = from.at(std::get<program::AllToAll>(theirs).in) + r * part;
        std::copy(in, in + part, to.at(x->out) + m * part);
      } else if (const auto* v = std::get_if<program::Receive>(&mine); v != nullptr && m == (r + n - 1) % n) {
        const float* in = from.at(std::get<program::Send>(action(m, op - 1)).data);
        std::copy(in, in + v->data.count, to.at(v->data));
      }
    }
  }
  std::string complaint(int r) {
    return test::error_of([&] { checks[r]->check(memory[r]); });
  }
  program::View result(int r) const {
    program::View out;
    for (const program::Operation& op : program(r).step) {
      const bool is_result = op.label.what == "message" && !std::holds_alternative<program::Send>(op.action);
      if (is_result) out = program::transferred_by(op.action).out;
    }
    return out;
  }

  config::Settings settings;
  program::Layout layout;
  program::ProgramSet set;
  std::vector<Memory> memory;
  std::vector<std::unique_ptr<OutputCheck>> checks;
  std::vector<int> turns;  // ranks in the order in which sums add their numbers
};

TEST(OutputChecks, AcceptWhatACollectiveMustGiveAndNothingElse) {
  for (const Kind kind : every_collective) {
    for (const bool in_place : {true, false}) {
      for (const config::Precision precision : {config::Precision::fp32, config::Precision::bf16}) {
        config::Settings s = collective(kind, Over::world, in_place);
        s.precision = precision;
        s.message_bytes = 3 * 500 * 4;
        OperationJob job(s, 3);
        const std::string name = config::find_variable("collective")->print(s);
        EXPECT_NE(job.complaint(1), "") << name << " before the step: nothing was computed";
        job.run();
        for (int r = 0; r < 3; ++r) EXPECT_EQ(job.complaint(r), "") << name << in_place << static_cast<int>(precision);
        // One wrong element, and parts of ranks exchanged.
        const program::View out = job.result(2);
        float& last = job.memory[2].at(out)[out.count - 1];
        const float right = last;
        last = -last - 1;
        EXPECT_THAT(job.complaint(2),
                    HasSubstr(name + " gives a wrong result: element " + std::to_string(out.count - 1)));
        last = right;
        EXPECT_EQ(job.complaint(2), "");
        std::rotate(job.memory[2].at(out), job.memory[2].at(out) + out.count / 3, job.memory[2].at(out) + out.count);
        EXPECT_NE(job.complaint(2), "") << name;
      }
    }
  }
}

// The library chooses the order: along the ranks, over the nodes first, or any other.
TEST(OutputChecks, AcceptBf16SumsOfManyRanksInAnyOrder) {
  constexpr int ranks_of_node = 8;
  for (const auto& [kind, in_place, ranks, repetitions] : {std::tuple{Kind::all_reduce, true, 96, 20},
                                                           {Kind::all_reduce, true, 128, 20},
                                                           {Kind::all_reduce, true, 47, 20},
                                                           {Kind::all_reduce, false, 640, 1},
                                                           {Kind::reduce_scatter, true, 128, 20},
                                                           {Kind::reduce_scatter, true, 3, 250},
                                                           {Kind::reduce_scatter, false, 640, 1}}) {
    config::Settings s = collective(kind, Over::world, in_place);
    s.precision = config::Precision::bf16;
    s.repetitions = repetitions;
    s.message_bytes = (kind == Kind::all_reduce ? 9 : 3 * ranks) * 2;
    OperationJob job(s, ranks);
    for (const char* order : {"ranks", "local ranks", "drawn"}) {
      if (order == std::string_view("local ranks"))
        std::ranges::stable_sort(job.turns, {}, [](int rank) { return rank % ranks_of_node; });
      if (order == std::string_view("drawn")) std::ranges::shuffle(job.turns, std::mt19937(1));
      for (int r = 0; r < ranks; ++r) job.checks[r]->prepare(job.memory[r]);
      job.run();
      for (const int r : {0, 1, ranks - 1}) {
        EXPECT_EQ(job.complaint(r), "") << static_cast<int>(kind) << in_place << ' ' << ranks << ' ' << order;
        const program::View out = job.result(r);
        float& first = job.memory[r].at(out)[0];
        const float right = std::exchange(first, first == 0 ? 1 : -first);
        EXPECT_NE(job.complaint(r), "") << static_cast<int>(kind) << in_place << ' ' << ranks << ' ' << order;
        first = right;
      }
    }
  }
}

}  // namespace
}  // namespace harness::workloads
