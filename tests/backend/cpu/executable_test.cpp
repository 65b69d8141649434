#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "backends/backends.h"
#include "program/builder.h"
#include "ranks.h"
#include "rig.h"
#include "support/errors.h"

namespace harness::test {
namespace {

using ::testing::HasSubstr;

class CountingInputs : public program::InputSource {
 public:
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    EXPECT_EQ(buffer, "input");
    const auto value = static_cast<float>(step);
    for (std::size_t i = 0; i + 4 <= to.size(); i += 4) std::memcpy(&to[i], &value, 4);
  }
};

// A tensor hops between two streams: a missed wait breaks the arithmetic sooner or later.
TEST(Executable, StreamsKeepTheOrderOfDependencies) {
  program::ProgramBuilder b({"compute", "side"});
  const program::View input = b.buffer("input", program::DType::f32, 1, program::BufferKind::input);
  const program::View x = b.buffer("x", program::DType::f32, 4096), y = b.buffer("y", program::DType::f32, 4096);
  const program::View ring = b.buffer("ring", program::DType::f32, 8, program::BufferKind::output);
  const program::View counter = b.buffer("counter", program::DType::i32, 1, program::BufferKind::persistent);
  const program::View ones = b.buffer("one", program::DType::f32, 4096, program::BufferKind::persistent);
  b.emit(0, program::Fill{counter, 0}, {});
  b.emit(0, program::Fill{ring, -1}, {});
  b.emit(0, program::Fill{ones, 1}, {});
  b.begin_step();
  b.emit(0, program::Fill{x, 0}, {});
  b.emit(0, program::Convert{input, x.part(0, 1)}, {});
  for (int hop = 0; hop < 20; ++hop) {
    b.emit(1, program::ResidualAdd{x, ones, {}, y, 1, 4096}, {});
    b.emit(0, program::ResidualAdd{y, ones, {}, x, 1, 4096}, {});
  }
  b.emit(1, program::Record{x.part(0, 1), ring, counter}, {});
  const program::Program program = b.take();
  Ranks ranks({}, {}, [&](int) { return &program; });
  ranks[0].initialize();
  EXPECT_EQ(ranks[0].progress().step, -1);
  const auto times = ranks[0].run(5, 50, CountingInputs{});
  ASSERT_EQ(times.size(), 51u);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i], times[i - 1]);
  EXPECT_EQ(ranks[0].progress().step, 49);
  EXPECT_EQ(ranks[0].progress().operation, -1);
  EXPECT_FALSE(ranks[0].progress().in_communication);
  std::vector<float> losses(8);
  ranks[0].read(ring, std::as_writable_bytes(std::span(losses)));
  for (int step = 42; step < 50; ++step) EXPECT_EQ(losses[step % 8], static_cast<float>(step + 5 + 40));
}

TEST(Executable, ProfileHasEveryOperationInItsPlace) {
  program::ProgramBuilder b({"compute", "side"});
  const program::View x = b.buffer("x", program::DType::f32, 100000), y = b.buffer("y", program::DType::f32, 100000);
  b.begin_step();
  b.emit(0, program::Fill{x, 1}, {});
  b.emit(1, program::Convert{x, y}, {});
  b.emit(0, program::Fill{x, 2}, {});
  const program::Program program = b.take();
  Ranks ranks({}, {}, [&](int) { return &program; });
  const auto intervals = ranks[0].run_profiled(0, program::NoInputs{});
  ASSERT_EQ(intervals.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(intervals[i].operation, static_cast<program::OperationId>(i));
    EXPECT_EQ(intervals[i].stream, i == 1 ? 1 : 0);
    EXPECT_GE(intervals[i].start_s, i ? intervals[i - 1].end_s : 0.0);
    EXPECT_GT(intervals[i].end_s, intervals[i].start_s);
  }
}

// Gradients may travel in bf16 and be products of fp32.
TEST(Executable, WarnsOfNoEmulatedProductsInAStepThatOnlySendsBf16) {
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);  // a CPU without bf16, if oneDNN has not been used before
  program::ProgramBuilder b({"compute"});
  const program::View x = b.buffer("x", program::DType::f32, 64), out = b.buffer("out", program::DType::f32, 64);
  const program::View sent = b.buffer("sent", program::DType::bf16, 64);
  b.begin_step();
  b.emit(0, program::Fill{x, 1}, {});
  b.emit(0, program::Matmul{.a = x, .b = x, .out = out, .m = 8, .n = 8, .k = 8}, {});
  b.emit(0, program::Convert{out, sent}, {});
  const program::Program program = b.take();
  Ranks ranks({}, {}, [&](int) { return &program; });
  EXPECT_THAT(ranks[0].warnings(), ::testing::IsEmpty());
  unsetenv("ONEDNN_MAX_CPU_ISA");
}

program::Program all_reduce_program(std::int64_t count) {
  program::ProgramBuilder b({"compute", "data"});
  const program::View x = b.buffer("x", program::DType::f32, count, program::BufferKind::persistent);
  b.begin_step();
  b.emit(0, program::Fill{x, 1}, {});
  b.emit(1, program::AllReduce{0, x}, {"grad_reduce", program::Phase::gradient_sync});
  b.emit(0, program::Fill{x, 2}, {});
  return b.take();
}

/// Ranks along the data axis that run one Program.
struct DataRanks : Ranks {
  DataRanks(int n, const program::Program& program, double timeout_s, const config::Settings& settings = {})
      : Ranks(
            {{program::Axis::data, n}}, {{"data", program::AxisSet::of({program::Axis::data}), {}}},
            [&](int) { return &program; }, settings, timeout_s) {}
};

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Failures, ARankThatGoesAwayIsPeerLostAndNamesTheOperation) {
  for (const auto algorithm : {config::AllReduceAlgorithm::ring, config::AllReduceAlgorithm::halving_doubling}) {
    const program::Program program = all_reduce_program(100000);
    config::Settings settings;
    settings.allreduce_algorithm = algorithm;
    DataRanks ranks(3, program, 60, settings);
    const double took = seconds_of([&] {
      ranks.errors = ranks.each([&](int r) {
        ranks[r].run(0, 2, program::NoInputs{});
        if (r == 2) {
          ranks.executables[2].reset();
        } else {
          ranks[r].run(2, 2, program::NoInputs{});
        }
      });
    });
    EXPECT_LT(took, 20);  // well below the time-out: the loss was detected, not timed out
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(is<backend::PeerLost>(ranks.errors[r])) << message_of(ranks.errors[r]);
      EXPECT_THAT(message_of(ranks.errors[r]), HasSubstr("grad_reduce"));
      EXPECT_THAT(message_of(ranks.errors[r]), HasSubstr("data"));
    }
    EXPECT_THROW(ranks[0].run(9, 1, program::NoInputs{}), backend::PeerLost);  // the peer stays lost
  }
}

TEST(Failures, ARankThatDoesNotAnswerTimesOut) {
  const program::Program program = all_reduce_program(1000);
  DataRanks ranks(2, program, 0.3);
  ranks.errors = ranks.each([&](int r) {
    if (r == 0) ranks[r].run(0, 1, program::NoInputs{});
  });
  EXPECT_TRUE(is<backend::PeerLost>(ranks.errors[0])) << message_of(ranks.errors[0]);
}

// Rank 1 fails on its inputs while rank 0 waits for it in an all-reduce: both end, and rank 1 reports the cause.
TEST(Failures, AFailureOnOneStreamStopsTheOthers) {
  program::ProgramBuilder b({"compute", "data"});
  const program::View x = b.buffer("x", program::DType::f32, 10, program::BufferKind::persistent);
  b.buffer("input", program::DType::i32, 1, program::BufferKind::input);
  b.begin_step();
  b.emit(1, program::AllReduce{0, x}, {});
  b.emit(0, program::Fill{b.buffer("y", program::DType::f32, 1), 0}, {});
  const program::Program program = b.take();
  DataRanks ranks(2, program, 60);
  struct Empty : program::InputSource {
    void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
  };
  struct Failing : program::InputSource {
    void fill(const std::string&, std::int64_t, std::span<std::byte>) const override { fail("no more tokens"); }
  };
  const double took = seconds_of([&] {
    ranks.errors = ranks.each([&](int r) {
      if (r == 0) {
        ranks[r].run(0, 1, Empty{});
      } else {
        try {
          ranks[r].run(0, 1, Failing{});
        } catch (const Error&) {
          ranks.executables[1].reset();  // as a worker does that ends on an error
          throw;
        }
      }
    });
  });
  EXPECT_LT(took, 20);
  EXPECT_TRUE(is<backend::PeerLost>(ranks.errors[0])) << message_of(ranks.errors[0]);
  EXPECT_EQ(message_of(ranks.errors[1]), "no more tokens");
}

TEST(Failures, ConnectingGivesUpInTime) {
  const program::Program program = all_reduce_program(10);
  program::Layout layout;
  layout[program::Axis::data] = 2;
  backend::ExecutableRequest request;
  request.program = &program;
  request.groups = {{"data", program::AxisSet::of({program::Axis::data}), {}}};
  request.layout = layout;
  request.timeout_s = 60;
  std::vector<std::unique_ptr<backend::Executable>> two;
  std::vector<std::vector<RendezvousMessage>> sent;
  for (int r = 0; r < 2; ++r) {
    request.rank = r;
    two.push_back(backends::get(config::BackendKind::cpu).create(request));
    sent.push_back(two.back()->publish());
  }
  EXPECT_THROW(two[0]->connect({}, 5), Error);  // no address: fails at once
  // With the address of a rank that is gone, connecting fails within the time-out.
  ASSERT_EQ(sent[1].size(), 1u);
  request.rank = 0;
  const auto alone = backends::get(config::BackendKind::cpu).create(request);
  alone->publish();
  two[1].reset();
  EXPECT_THROW(alone->connect({{1, sent[1][0].key, sent[1][0].bytes}}, 0.3), backend::PeerLost);
}

}  // namespace
}  // namespace harness::test
