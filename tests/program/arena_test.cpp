#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "program/builder.h"
#include "program/memory.h"

namespace harness::program {
namespace {

// A step of equal rounds between a beginning and an end. Streams wait for each other only for data.
class DrawnRounds {
 public:
  explicit DrawnRounds(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 10; ++i) ops_.push_back({draw(3), 64 * (1 + draw(6)), draw(3) - 1, draw(10)});
  }

  Program of(int rounds, RepeatedPart* part) {
    ProgramBuilder b({"compute", "tensor", "pipeline"});
    b.begin_step();
    OperationId next = 0;
    std::vector<View> first;
    for (int i = 0; i < 4; ++i) {
      first.push_back(b.buffer("first", DType::f32, 64 * (i + 1)));
      next = 1 + b.emit(i % 3, Fill{first.back(), 1}, {"first"});
    }
    std::vector<std::vector<View>> written(2, first);  // by round
    for (int round = 2; round < rounds; ++round) {
      if (round == repeated) part->begin = next;
      if (round == repeated + 1) part->end = next;
      written.emplace_back();
      for (const Op& op : ops_) {
        const std::vector<View>& own = written.back();
        const std::vector<View>& earlier = op.age == 0 && !own.empty() ? own : written[round - 1];
        const std::vector<View>& from = op.age < 0 ? first : earlier;
        const View out = b.buffer("of a round", DType::f32, op.count);
        next = 1 + b.emit(op.stream, Convert{from[op.from % from.size()], out}, {"round"});
        written.back().push_back(out);
      }
    }
    part->tail = next;
    for (const View& v : first) b.emit(1, Gelu{v, v}, {"end"});
    const View out = b.buffer("end", DType::f32, 1024);
    b.emit(2, Convert{written.back().back(), out}, {"end"});
    return b.take();
  }

 private:
  static constexpr int repeated = 5;
  struct Op {
    int stream = 0, count = 0;
    int age = 0, from = 0;  // age of its input in rounds, -1: from the beginning; its index there
  };
  int draw(int values) { return static_cast<int>(random_() % values); }

  std::mt19937_64 random_;
  std::vector<Op> ops_;
};

TEST(Arena, OfARepeatedPartIsThatOfTheStepWrittenOut) {
  int known = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    DrawnRounds draw(seed);
    RepeatedPart part, unused;
    const Program few = draw.of(9, &part);
    for (const int more : {1, 2, 20}) {
      const std::optional<std::int64_t> bytes = arena_bytes(few, part, more);
      if (!bytes) continue;
      EXPECT_EQ(*bytes, plan_arena(draw.of(9 + more, &unused)).bytes) << "seed " << seed << ", " << more;
      ++known;
    }
  }
  EXPECT_GT(known, 300);
}

TEST(Arena, IsNotKnownOfAPartThatIsNotRepeated) {
  DrawnRounds draw(1);
  RepeatedPart part;
  const Program step = draw.of(9, &part);
  ASSERT_TRUE(arena_bytes(step, part, 2));
  EXPECT_FALSE(arena_bytes(step, {part.begin, part.end + 1, part.tail}, 2));
  EXPECT_FALSE(arena_bytes(step, {0, part.begin, part.tail}, 2));
  EXPECT_FALSE(arena_bytes(step, {part.begin, part.end, part.begin}, 2));
}

// The second stream knows of the first stream's progress only from the data it reads, which advances unevenly.
TEST(Arena, IsNotKnownWhereRoundsWaitForOthers) {
  const auto bytes = [](int newest_of_round_6) {
    ProgramBuilder b({"compute", "tensor"});
    b.begin_step();
    std::vector<View> made;
    RepeatedPart part{.begin = 2 * 5, .end = 2 * 6, .tail = 2 * 9};
    for (int round = 0; round < 9; ++round) {
      made.push_back(b.buffer("made", DType::f32, 64));
      b.emit(0, Fill{made.back(), 1}, {"round"});
      const View copy = b.buffer("copy", DType::f32, 64);
      const int newest = round == 6 ? newest_of_round_6 : std::max(round - 3, 0);
      b.emit(1, Convert{made[newest], copy}, {"round"});
    }
    return arena_bytes(b.take(), part, 2);
  };
  EXPECT_TRUE(bytes(3));
  EXPECT_FALSE(bytes(5));
}

// A fused group's sent message must not share memory with a received one: both are in flight at the same time.
TEST(Arena, MembersOfAFusedGroupShareNoMemory) {
  for (const bool fused : {false, true}) {
    ProgramBuilder b({"compute", "pipeline"});
    b.begin_step();
    const View out = b.buffer("out", DType::f32, 64), in = b.buffer("in", DType::f32, 64);
    const std::int32_t group = fused ? b.new_fused_group() : -1;
    b.emit(0, Fill{out, 1}, {"out"});
    b.emit(1, Send{{Axis::pipeline, 1}, out}, {"activations"}, {}, group);
    b.emit(1, Receive{{Axis::pipeline, 1}, in}, {"gradients"}, {}, group);
    b.emit(0, Gelu{in, in}, {"use"});
    const Program p = b.take();
    const Arena arena = plan_arena(p);
    EXPECT_EQ(arena.offset_bytes.at(out.buffer) == arena.offset_bytes.at(in.buffer), !fused);
  }
}

// The setup and step lists share memory. A buffer that both lists use must not overlap any other.
TEST(Arena, WhatBothListsTouchHasAPlaceOfItsOwn) {
  for (const std::int64_t others : {1, 64, 1024}) {
    ProgramBuilder b({"compute"});
    const View both = b.buffer("both", DType::f32, 64), a = b.buffer("a", DType::f32, others),
               c = b.buffer("c", DType::f32, 3 * others);
    b.emit(0, Fill{a, 1}, {"a"});
    b.emit(0, Fill{both, 1}, {"both"});
    b.emit(0, Gelu{a, a}, {"use of a"});
    b.begin_step();
    b.emit(0, Fill{both, 1}, {"both"});
    b.emit(0, Fill{c, 1}, {"c"});
    b.emit(0, Gelu{both, both}, {"use of both"});
    const Program p = b.take();
    const Arena arena = plan_arena(p);
    const auto begin = [&](const View& v) { return arena.offset_bytes.at(v.buffer); };
    const auto end = [&](const View& v) { return begin(v) + p.buffer_of(v).bytes(); };
    for (const View& other : {a, c}) {
      EXPECT_TRUE(end(other) <= begin(both) || end(both) <= begin(other)) << others;
      EXPECT_LE(end(other), arena.bytes);
    }
    EXPECT_LE(end(both), arena.bytes);
  }
}

}  // namespace
}  // namespace harness::program
