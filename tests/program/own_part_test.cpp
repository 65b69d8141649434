// Views with a different location on each rank of a role.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/builder.h"
#include "program/describe.h"
#include "program/expand.h"
#include "program/program.h"

namespace harness::program {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t elements = 12;

// The step of a sharded optimizer: each replica sums its part of the gradients, updates its part of the weights from
// it, and gathers the other parts. One Program serves all ranks.
struct Sharded {
  ProgramSet set{{{Axis::data, 4}, {Axis::tensor, 4}},
                 {{"data", AxisSet::of({Axis::data}), {}}, {"tensor", AxisSet::of({Axis::tensor}), {}}},
                 {},
                 {}};
  View gradients, weights;

  explicit Sharded(int parts = 4, Axis follows = Axis::data, std::int64_t beyond = 0) {
    ProgramBuilder b({"compute", "data"});
    gradients = b.buffer("gradients", DType::f32, elements, BufferKind::persistent);
    weights = b.buffer("weights", DType::f32, elements, BufferKind::persistent);
    b.emit(0, Fill{gradients, 1}, {"", Phase::setup});
    b.begin_step();
    View own = weights.own_part(follows, parts);
    own.offset += beyond;
    b.emit(1, ReduceScatter{0, gradients, gradients.own_part(Axis::data, 4)}, {"gradients"});
    b.emit(0, Convert{gradients.own_part(Axis::data, 4), own}, {"update"});
    b.emit(1, AllGather{0, own, weights}, {"weights"});
    set.roles.push_back(b.take());
  }
  std::string problems() const {
    std::string all;
    for (const std::string& problem : verify(set)) all += problem + "\n";
    return all;
  }
};

TEST(OwnPart, IsThatOfTheRanksCoordinate) {
  const View whole{3, 100, 24};
  const View own = whole.own_part(Axis::data, 4);
  Coordinates at;
  at[Axis::data] = 2;
  at[Axis::tensor] = 1;
  EXPECT_EQ(own.on(at), (View{3, 112, 6}));
  EXPECT_EQ(own.all_parts(), whole);
  EXPECT_EQ(whole.on(at), whole);
  EXPECT_EQ(whole.own_part(Axis::data, 1).on({}), whole);
  EXPECT_EQ(whole.own_part(Axis::data, 2).on(at), (View{3, 100, 12}));  // repeats with period 2
}

TEST(OwnPart, OverlapsWhatAnyRanksPartDoes) {
  const View own = View{0, 8, 16}.own_part(Axis::data, 4);  // [8, 24)
  EXPECT_TRUE(overlap(own, {0, 20, 2}));
  EXPECT_TRUE(overlap({0, 0, 9}, own));
  EXPECT_FALSE(overlap(own, {0, 24, 2}));
  EXPECT_FALSE(overlap(own, {1, 8, 2}));
}

TEST(OwnPart, MakesOneProgramOfAllReplicas) {
  EXPECT_EQ(Sharded().problems(), "");
  EXPECT_TRUE(verify(expand(Sharded().set)).empty());
}

// A rank's part must lie within its buffer, match the number of ranks, and be in place at its index in the group.
TEST(OwnPart, IsRefusedElsewhere) {
  EXPECT_THAT(Sharded(4, Axis::data, 1).problems(), HasSubstr("lies outside it"));
  EXPECT_THAT(Sharded(2).problems(), HasSubstr("its own of 2 parts, but the data axis has 4 ranks"));
  const std::string refusal = "its part of weights is not that of a member of group data";
  EXPECT_THAT(Sharded(4, Axis::tensor).problems(), HasSubstr(refusal));
  Sharded same;
  std::get<AllGather>(same.set.roles[0].step[2].action).in = same.weights.part(0, 3);  // the same part on all ranks
  EXPECT_THAT(same.problems(), HasSubstr(refusal));
}

TEST(OwnPart, StandsInTheListingAndTheHashWhereThereAreSeveral) {
  const Sharded sharded;
  const Program& p = sharded.set.roles[0];
  EXPECT_THAT(describe(p, p.step[0]), HasSubstr(" r0+0:12 w0+0:3 of 4 by data"));
  ProgramSet whole = sharded.set, one = sharded.set;
  std::get<Convert>(whole.roles[0].step[1].action).in = sharded.gradients;
  std::get<Convert>(one.roles[0].step[1].action).in = sharded.gradients.own_part(Axis::data, 1);
  EXPECT_NE(hash(whole), hash(sharded.set));
  EXPECT_EQ(hash(whole), hash(one));
}

}  // namespace
}  // namespace harness::program
