#include "program/builder.h"
#include "ranks.h"
#include "rig.h"

namespace harness::test {
namespace {

Values read(backend::Executable& executable, const program::View& view, program::DType type) {
  std::vector<std::byte> bytes(view.count * program::size_of(type));
  executable.read(view, bytes);
  return Numbers({bytes.data(), type, view.count}).copy();
}

// A Program for n ranks along the data axis, in one group, with the step that emit(builder, in, out) makes.
struct Collective {
  program::Layout layout;
  std::vector<program::Group> groups{{"data", program::AxisSet::of({program::Axis::data}), {}}};
  program::Program program;
  program::View in, out;

  template <class Emit>
  Collective(int n, program::DType type, std::int64_t in_count, std::int64_t out_count, const Emit& emit)
      : layout{{program::Axis::data, n}} {
    program::ProgramBuilder b({"compute", "data"});
    in = b.buffer("in", type, in_count, program::BufferKind::persistent);
    out = b.buffer("out", type, out_count, program::BufferKind::persistent);
    b.begin_step();
    emit(b, in, out);
    program = b.take();
  }

  // Small integers, whose sums are exact in bf16 in any order.
  static double value(int rank, std::int64_t i) { return static_cast<double>((i * 7 + rank * 3) % 11 - 4); }

  /// Runs the Program twice over the same connections and returns each rank's `result`.
  std::vector<Values> run(const program::View& result, const config::Settings& settings = {}) {
    Ranks ranks(
        layout, groups, [this](int) { return &program; }, settings);
    const program::DType type = program.buffers[0].type;
    std::vector<Values> results(layout.ranks());
    ranks.errors = ranks.each([&](int r) {
      backend::Executable& e = ranks[r];
      e.initialize();
      for (int round = 0; round < 2; ++round) {
        std::vector<std::byte> bytes(in.count * program::size_of(type));
        for (std::int64_t i = 0; i < in.count; ++i) Numbers({bytes.data(), type, in.count})[i] = value(r, i);
        e.write(in, bytes);
        e.run(round, 1, program::NoInputs{});
      }
      results[r] = read(e, result, type);
    });
    rethrow_first(ranks.errors);
    return results;
  }
};

class Collectives : public PerType {};
INSTANTIATE_TEST_SUITE_P(Types, Collectives, all_types(), type_name);

// Runs all lengths and reductions one after the other over the same communicators, twice.
TEST_P(Collectives, AllReduceByEveryAlgorithm) {
  constexpr std::int64_t counts[] = {1, 3, 5003, 60000}, total = 1 + 3 + 5003 + 60000;
  for (const auto algorithm : {config::AllReduceAlgorithm::ring, config::AllReduceAlgorithm::halving_doubling}) {
    for (const int n : {1, 2, 3, 4, 5}) {
      Collective c(n, GetParam(), 2 * total, 1, [&](program::ProgramBuilder& b, const program::View& in, const auto&) {
        std::int64_t at = 0;
        for (const program::Reduction reduction : {program::Reduction::sum, program::Reduction::max}) {
          for (const std::int64_t count : counts) {
            b.emit(1, program::AllReduce{0, in.part(at, count), reduction}, {});
            at += count;
          }
        }
      });
      config::Settings settings;
      settings.allreduce_algorithm = algorithm;
      for (const auto& got : c.run(c.in, settings)) {
        for (std::int64_t i = 0; i < 2 * total; ++i) {
          double sum = 0, largest = -100;
          for (int r = 0; r < n; ++r) {
            sum += Collective::value(r, i);
            largest = std::max(largest, Collective::value(r, i));
          }
          ASSERT_EQ(got[i], i < total ? sum : largest)
              << "algorithm " << static_cast<int>(algorithm) << ", " << n << " ranks, element " << i;
        }
      }
    }
  }
}

// Checks every element of `out` on every rank against due(rank, element). `emit` makes the step.
template <class Emit, class Due>
void expect_result(int n, program::DType type, std::int64_t in_count, std::int64_t out_count, const Emit& emit,
                   const Due& due) {
  Collective c(n, type, in_count, out_count, emit);
  const auto results = c.run(c.out);
  for (int rank = 0; rank < n; ++rank) {
    for (std::int64_t i = 0; i < out_count; ++i)
      ASSERT_EQ(results[rank][i], due(rank, i)) << n << " ranks, rank " << rank << ", element " << i;
  }
}

TEST_P(Collectives, MoveAndAddUpAsTheirDefinitionsSay) {
  using Builder = program::ProgramBuilder;
  using View = program::View;
  for (const int n : {1, 2, 3, 4}) {
    const auto sum = [n](std::int64_t i) {
      double of_all = 0;
      for (int r = 0; r < n; ++r) of_all += Collective::value(r, i);
      return of_all;
    };
    for (const std::int64_t part : {1, 37, 200000}) {
      expect_result(
          n, GetParam(), part * n, part,
          [](Builder& b, const View& in, const View& out) {
            b.emit(1, program::ReduceScatter{0, in, out}, {});
          },
          [&](int rank, std::int64_t i) { return sum(rank * part + i); });
    }
    constexpr std::int64_t part = 1001;
    expect_result(
        n, GetParam(), part, part * n,
        [](Builder& b, const View& in, const View& out) {
          b.emit(1, program::AllGather{0, in, out}, {});
        },
        [](int, std::int64_t i) { return Collective::value(static_cast<int>(i / part), i % part); });
    expect_result(
        n, GetParam(), part * n, part * n,
        [](Builder& b, const View& in, const View& out) {
          b.emit(1, program::AllToAll{0, in, out}, {});
        },
        [](int rank, std::int64_t i) { return Collective::value(static_cast<int>(i / part), rank * part + i % part); });
  }
}

// Each rank of a ring sends to the next and receives from the previous in one group, several times.
TEST(PointToPoint, ShiftsAroundARing) {
  for (const int n : {2, 3, 4}) {
    program::Layout layout;
    layout[program::Axis::pipeline] = n;
    program::ProgramBuilder b({"compute", "pipeline"});
    const program::View mine = b.buffer("mine", program::DType::f32, 70000, program::BufferKind::persistent);
    const program::View other = b.buffer("other", program::DType::f32, 70000, program::BufferKind::persistent);
    b.begin_step();
    for (int hop = 0; hop < 3; ++hop) {
      const auto fused = b.new_fused_group();
      b.emit(1, program::Send{{program::Axis::pipeline, 1}, mine}, {}, {}, fused);
      b.emit(1, program::Receive{{program::Axis::pipeline, -1}, other}, {}, {}, fused);
      b.emit(0, program::Convert{other, mine}, {});
    }
    const program::Program program = b.take();
    Ranks ranks(layout, {}, [&](int) { return &program; });
    ranks.errors = ranks.each([&](int r) {
      std::vector<float> values(70000, static_cast<float>(r));
      ranks[r].write(mine, std::as_bytes(std::span(values)));
      ranks[r].run(0, 2, program::NoInputs{});
      ranks[r].read(mine, std::as_writable_bytes(std::span(values)));
      for (const float v : values) ASSERT_EQ(v, static_cast<float>(((r - 6) % n + n) % n));
    });
    rethrow_first(ranks.errors);
  }
}

}  // namespace
}  // namespace harness::test
