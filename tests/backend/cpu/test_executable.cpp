#include <chrono>
#include <cstring>

#include "ranks.h"
#include "rig.h"

namespace harness::test {
namespace {

class CountingInputs : public InputSource {
 public:
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    EXPECT_EQ(buffer, "input");
    const auto value = static_cast<float>(step);
    for (std::size_t i = 0; i + 4 <= to.size(); i += 4) std::memcpy(&to[i], &value, 4);
  }
};

// Chunks hop between two streams: any wait not kept breaks the arithmetic, sooner or later.
TEST(Executable, StreamsKeepTheOrderOfDependencies) {
  ProgramBuilder b({"compute", "side"});
  const View input = b.buffer("input", DType::f32, 1, BufferKind::input);
  const View x = b.buffer("x", DType::f32, 4096), y = b.buffer("y", DType::f32, 4096);
  const View ring = b.buffer("ring", DType::f32, 8, BufferKind::output);
  const View counter = b.buffer("counter", DType::i32, 1, BufferKind::persistent);
  const View one = b.buffer("one", DType::f32, 4096, BufferKind::persistent);
  b.emit(0, Fill{counter, 0}, {});
  b.emit(0, Fill{ring, -1}, {});
  b.emit(0, Fill{one, 1}, {});
  b.begin_step();
  b.emit(0, Fill{x, 0}, {});
  b.emit(0, Convert{input, x.part(0, 1)}, {});
  for (int hop = 0; hop < 20; ++hop) {
    b.emit(1, ResidualAdd{x, one, {}, y, 1, 4096}, {});
    b.emit(0, ResidualAdd{y, one, {}, x, 1, 4096}, {});
  }
  b.emit(1, Record{x.part(0, 1), ring, counter}, {});
  const Program program = b.take();
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
  for (int step = 42; step < 50; ++step)
    EXPECT_EQ(losses[static_cast<std::size_t>(step % 8)], static_cast<float>(step + 5 + 40));
}

TEST(Executable, ProfileHasEveryOperationInItsPlace) {
  ProgramBuilder b({"compute", "side"});
  const View x = b.buffer("x", DType::f32, 100000), y = b.buffer("y", DType::f32, 100000);
  b.begin_step();
  b.emit(0, Fill{x, 1}, {});
  b.emit(1, Convert{x, y}, {});
  b.emit(0, Fill{x, 2}, {});
  const Program program = b.take();
  Ranks ranks({}, {}, [&](int) { return &program; });
  const auto intervals = ranks[0].run_profiled(0, NoInputs{});
  ASSERT_EQ(intervals.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(intervals[i].operation, static_cast<OperationId>(i));
    EXPECT_EQ(intervals[i].stream, i == 1 ? 1 : 0);
    EXPECT_GE(intervals[i].start_s, i ? intervals[i - 1].end_s : 0.0);
    EXPECT_GT(intervals[i].end_s, intervals[i].start_s);
  }
}

Program all_reduce_program(std::int64_t count) {
  ProgramBuilder b({"compute", "data"});
  const View x = b.buffer("x", DType::f32, count, BufferKind::persistent);
  b.begin_step();
  b.emit(0, Fill{x, 1}, {});
  b.emit(1, AllReduce{0, x}, {"grad_reduce", Phase::gradient_sync});
  b.emit(0, Fill{x, 2}, {});
  return b.take();
}

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Failures, ARankThatGoesAwayIsPeerLostAndNamesTheOperation) {
  for (const auto algorithm :
       {AllReduceAlgorithm::ring, AllReduceAlgorithm::halving_doubling, AllReduceAlgorithm::bcube}) {
    const Program program = all_reduce_program(100000);
    Layout layout;
    layout[Axis::data] = 3;
    Settings settings;
    settings.allreduce_algorithm = algorithm;
    Ranks ranks(
        layout, {{"data", AxisSet::of({Axis::data}), {}}}, [&](int) { return &program; }, settings, 60);
    const double took = seconds_of([&] {
      ranks.errors = ranks.each([&](int r) {
        ranks[r].run(0, 2, NoInputs{});
        if (r == 2) {
          ranks.executables[2].reset();
        } else {
          ranks[r].run(2, 2, NoInputs{});
        }
      });
    });
    EXPECT_LT(took, 20);  // well below the time-out: it was noticed, not waited for
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(is<PeerLost>(ranks.errors[static_cast<std::size_t>(r)]))
          << message(ranks.errors[static_cast<std::size_t>(r)]);
      EXPECT_NE(message(ranks.errors[static_cast<std::size_t>(r)]).find("grad_reduce"), std::string::npos);
      EXPECT_NE(message(ranks.errors[static_cast<std::size_t>(r)]).find("data"), std::string::npos);
    }
    EXPECT_THROW(ranks[0].run(9, 1, NoInputs{}), PeerLost);  // it stays lost
  }
}

TEST(Failures, ARankThatDoesNotAnswerTimesOut) {
  const Program program = all_reduce_program(1000);
  Layout layout;
  layout[Axis::data] = 2;
  Ranks ranks(
      layout, {{"data", AxisSet::of({Axis::data}), {}}}, [&](int) { return &program; }, {}, 0.3);
  ranks.errors = ranks.each([&](int r) {
    if (r == 0) ranks[r].run(0, 1, NoInputs{});
  });
  EXPECT_TRUE(is<PeerLost>(ranks.errors[0])) << message(ranks.errors[0]);
}

// One stream fails while another waits for a peer that will never come: both end, and the cause is what is reported.
TEST(Failures, AFailureOnOneStreamStopsTheOthers) {
  ProgramBuilder b({"compute", "data"});
  const View x = b.buffer("x", DType::f32, 10, BufferKind::persistent);
  const View tokens = b.buffer("input", DType::i32, 1, BufferKind::input);
  b.begin_step();
  b.emit(1, AllReduce{0, x}, {});
  b.emit(0, Fill{b.buffer("y", DType::f32, 1), 0}, {});
  (void)tokens;
  const Program program = b.take();
  ProgramBuilder none({"compute", "data"});
  const View unused = none.buffer("x", DType::f32, 10, BufferKind::persistent);
  none.begin_step();
  none.emit(1, AllReduce{0, unused}, {});
  Layout layout;
  layout[Axis::data] = 2;
  Ranks ranks(
      layout, {{"data", AxisSet::of({Axis::data}), {}}}, [&](int) { return &program; }, {}, 60);
  class Failing : public InputSource {
   public:
    void fill(const std::string&, std::int64_t, std::span<std::byte>) const override { fail("no more tokens"); }
  };
  const double took = seconds_of([&] {
    ranks.errors = ranks.each([&](int r) {
      if (r == 0) {
        ranks[r].run(0, 1, NoInputs{});
      } else {
        try {
          ranks[r].run(0, 1, Failing{});
        } catch (const Error&) {
          ranks.executables[1].reset();  // as a worker that ends on an error
          throw;
        }
      }
    });
  });
  EXPECT_LT(took, 20);
  EXPECT_TRUE(is<PeerLost>(ranks.errors[0])) << message(ranks.errors[0]);
  EXPECT_EQ(message(ranks.errors[1]), "no more tokens");
}

TEST(Failures, ConnectingGivesUpInTime) {
  const Program program = all_reduce_program(10);
  Layout layout;
  layout[Axis::data] = 2;
  ExecutableRequest request;
  request.program = &program;
  request.groups = {{"data", AxisSet::of({Axis::data}), {}}};
  request.layout = layout;
  request.timeout_s = 60;
  std::vector<std::unique_ptr<Executable>> two;
  std::vector<std::vector<RendezvousMessage>> sent;
  for (int r = 0; r < 2; ++r) {
    request.rank = r;
    two.push_back(backend(BackendKind::cpu).create(request));
    sent.push_back(two.back()->publish());
  }
  EXPECT_THROW(two[0]->connect({}, 5), Error);  // no address: an error of its own, at once
  // The addresses of a rank that never connects: one of the two sides waits for the other, which is away.
  ASSERT_EQ(sent[1].size(), 1u);
  request.rank = 0;
  const auto alone = backend(BackendKind::cpu).create(request);
  alone->publish();
  two[1].reset();
  EXPECT_THROW(alone->connect({{1, sent[1][0].key, sent[1][0].bytes}}, 0.3), PeerLost);
}

TEST(CpuBackend, SaysWhatItIs) {
  const Backend& cpu = backend(BackendKind::cpu);
  EXPECT_EQ(cpu.declared(), declared_fused(BackendKind::cpu));
  for (const auto& [name, value] : cpu.identity({})) EXPECT_FALSE(value.empty()) << name;
  EXPECT_THROW(backend(BackendKind::cuda), Error);
  ExecutableRequest where;
  EXPECT_GT(cpu.measure_matmul_flops(Precision::fp32, where, 0.02), 1e8);
  where.threads = 2;
  EXPECT_GT(cpu.measure_matmul_flops(Precision::bf16, where, 0.02), 1e8);
}

}  // namespace
}  // namespace harness::test
