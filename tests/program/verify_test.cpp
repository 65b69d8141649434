#include "program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/builder.h"
#include "program/expand.h"

namespace harness::program {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string texts(const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& problem : problems) all += problem + "\n";
  return all;
}

// A small pipeline of two stages that exchange activations and gradients, then all-reduce.
ProgramSet two_stages() {
  ProgramSet set{
      {}, {{"world", AxisSet::all(), {}}, {"data", AxisSet::of({Axis::data}), {}}}, AxisSet::of({Axis::pipeline}), {}};
  set.layout[Axis::pipeline] = 2;
  set.layout[Axis::data] = 2;
  for (int stage = 0; stage < 2; ++stage) {
    ProgramBuilder b({"compute", "pipeline", "data", "world"});
    const View w = b.buffer("w", DType::f32, 8, BufferKind::persistent);
    b.emit(0, Fill{w, 1}, {"w", Phase::setup});
    b.begin_step();
    const View x = b.buffer("x", DType::f32, 8), g = b.buffer("g", DType::f32, 8);
    if (stage == 0) {
      b.emit(0, Fill{x, 2}, {"x"});
      b.emit(1, Send{{Axis::pipeline, 1}, x}, {"activations"});
      b.emit(1, Receive{{Axis::pipeline, -1 + 2}, g}, {"gradients"});
    } else {
      b.emit(1, Receive{{Axis::pipeline, -1}, x}, {"activations"});
      b.emit(0, Convert{x, g}, {"g"});
      b.emit(1, Send{{Axis::pipeline, -1}, g}, {"gradients"});
    }
    b.emit(2, AllReduce{1, g}, {"gradient bucket"});
    b.emit(0, Gelu{g, w}, {"update", Phase::optimizer});
    b.emit(3, AllReduce{0, w}, {"loss", Phase::finish});
    set.roles.push_back(b.take());
  }
  return set;
}

std::size_t find(const Program& p, std::string_view kind, std::string_view what) {
  for (std::size_t i = 0; i < p.step.size(); ++i) {
    if (name_of(p.step[i].action) == kind && p.step[i].label.what == what) return i;
  }
  throw std::runtime_error("no such operation in the test");
}
Operation& operation(Program& p, std::string_view kind, std::string_view what) {
  return p.step[find(p, kind, what)];
}

void erase(Program& p, std::size_t at) {
  p.step.erase(p.step.begin() + static_cast<std::ptrdiff_t>(at));
  for (auto& op : p.step) {
    std::erase(op.waits, static_cast<OperationId>(at));
    for (auto& w : op.waits) w -= w > static_cast<OperationId>(at);
  }
}

TEST(Verify, AcceptsTwoStages) {
  EXPECT_EQ(texts(verify(two_stages())), "");
  EXPECT_EQ(texts(verify(expand(two_stages()))), "");
}

// Only labels distinguish messages of one size between the same ranks.
TEST(Verify, NamesAMessageThatIsTakenForAnother) {
  ProgramSet batch = two_stages(), name = batch;
  operation(batch.roles[1], "receive", "activations").label.micro_batch = 1;
  operation(name.roles[1], "receive", "activations").label.what = "gradients";
  EXPECT_THAT(texts(verify(batch)), AllOf(HasSubstr(" meets "), HasSubstr("activations (forward) of micro-batch 1")));
  EXPECT_THAT(texts(verify(name)), AllOf(HasSubstr(" meets "), HasSubstr("gradients (forward)")));
  for (const ProgramSet& set : {batch, name}) EXPECT_FALSE(verify(expand(set)).empty());
}

// Rank 3 (stage 1, data 1) has no receive. A fill of its x keeps everything but the communication correct.
TEST(Verify, NamesADroppedReceive) {
  auto set = expand(two_stages());
  Action& receive = operation(set.roles[3], "receive", "activations").action;
  receive = Fill{View(std::get<Receive>(receive).data), 0};
  EXPECT_THAT(texts(verify(set)), AllOf(HasSubstr("rank 1, step operation 1 (send activations"), HasSubstr("rank 3")));
}

TEST(Verify, NamesTwoCollectivesSwappedOnOneRank) {
  auto set = expand(two_stages());
  Operation &bucket = operation(set.roles[2], "all_reduce", "gradient bucket"),
            &loss = operation(set.roles[2], "all_reduce", "loss");
  std::swap(std::get<AllReduce>(bucket.action).group, std::get<AllReduce>(loss.action).group);
  std::swap(bucket.stream, loss.stream);
  EXPECT_THAT(texts(verify(set)), AllOf(HasSubstr("rank 2, step operation"), HasSubstr("never ends")));
}

TEST(Verify, NamesCollectivesThatDiffer) {
  auto set = expand(two_stages());
  View& data = std::get<AllReduce>(operation(set.roles[1], "all_reduce", "gradient bucket").action).data;
  data = data.part(0, 4);
  EXPECT_THAT(texts(verify(set)), AllOf(HasSubstr(" meets all_reduce of "), HasSubstr("rank 1")));
}

TEST(Verify, NamesAReadBeforeAWriteAndAMissingWait) {
  auto unwritten = two_stages(), unordered = unwritten;
  erase(unwritten.roles[0], find(unwritten.roles[0], "fill", "x"));
  EXPECT_THAT(texts(verify(unwritten)), AllOf(StartsWith("rank 0, step operation 0 (send activations"),
                                              HasSubstr("reads x[0..8), which nothing has written")));
  operation(unordered.roles[0], "send", "activations").waits.clear();
  EXPECT_THAT(texts(verify(unordered)), HasSubstr("in no defined order with operation 0 (fill x"));
}

TEST(Verify, NamesASendOrderThatOnlyBufferingWouldSave) {
  // Both stages send first and receive second.
  auto set = two_stages();
  auto& p = set.roles[1];
  const auto receive = find(p, "receive", "activations"), send = find(p, "send", "gradients");
  const View g = std::get<Send>(p.step[send].action).data;
  const Operation late = p.step[receive];
  p.step[receive].action = Fill{g, 1};
  p.step[receive].stream = 0;
  p.step.insert(p.step.begin() + static_cast<std::ptrdiff_t>(send) + 1, late);
  erase(p, find(p, "convert", "g"));
  // Waits that make everything but the send order correct again.
  for (std::size_t i = 0; i < p.step.size(); ++i) {
    p.step[i].waits.clear();
    if (i > 0) p.step[i].waits = {static_cast<OperationId>(i - 1)};
  }
  for (const auto& s : {set, expand(set)}) {
    EXPECT_THAT(texts(verify(s)),
                AllOf(HasSubstr("(send activations"), HasSubstr("(send gradients"), HasSubstr("never ends")));
  }
  // In one fused group these two messages are correct.
  for (auto& role : set.roles) {
    for (auto& op : role.step) {
      if (peer_of(op.action) != nullptr) op.fused_group = 0;
    }
  }
  EXPECT_EQ(texts(verify(set)), "");
}

TEST(Verify, NamesViewsAndShapesThatDoNotFit) {
  auto set = two_stages();
  std::get<Fill>(set.roles[0].step[0].action).out.count = 9;
  EXPECT_THAT(texts(verify(set)), HasSubstr("lies outside it"));
  set = two_stages();
  std::get<Gelu>(operation(set.roles[0], "gelu", "update").action).in.count = 4;
  EXPECT_THAT(texts(verify(set)), HasSubstr("w has 8 elements, expected 4"));
}

TEST(Verify, NamesWhatAProductCannotAdd) {
  const auto texts_of = [](const auto& change) {
    ProgramBuilder b({"compute"});
    const View x = b.buffer("x", DType::f32, 64, BufferKind::input), y = b.buffer("y", DType::f32, 64);
    const View half = b.buffer("half", DType::bf16, 64, BufferKind::input);
    Matmul product{.a = x, .b = x, .add = x, .out = y, .m = 8, .n = 8, .k = 8};
    change(product, half);
    b.emit(0, Fill{y, 0}, {"y"});
    b.emit(0, product, {"product"});
    return texts(verify({{}, {}, {}, {b.take()}}));
  };
  EXPECT_EQ(texts_of([](Matmul&, const View&) {}), "");
  EXPECT_THAT(texts_of([](Matmul& m, const View&) { m.add.count = 32; }), HasSubstr("x has 32 elements"));
  EXPECT_THAT(texts_of([](Matmul& m, const View& half) { m.add = half; }), HasSubstr("different element types"));
  EXPECT_THAT(texts_of([](Matmul& m, const View&) { m.add = m.out; }), HasSubstr("add and out overlap"));
  const auto adds = [](Matmul& m, const View&) { m.accumulate = true; };
  const auto activates = [](Matmul& m, const View&) {
    m.aux = m.out;
    m.epilogue = Epilogue::gelu;
  };
  const auto activates_and_adds_up = [](Matmul& m, const View&) {
    m.add = {};
    m.aux = m.b;
    m.epilogue = Epilogue::gelu_backward;
    m.accumulate = true;
  };
  const auto sums = [](Matmul& m, const View&) {
    m.transpose_a = true;
    m.bias_gradient = m.a.part(0, 8);
  };
  for (const std::string& said : {texts_of(adds), texts_of(activates), texts_of(activates_and_adds_up), texts_of(sums)})
    EXPECT_THAT(said, HasSubstr("do not all go together"));
}

// A step of two micro-batches that adds up the results of both reductions. Without the first sum a micro-batch is lost.
ProgramSet two_reductions(bool first_is_added, bool trains) {
  ProgramSet set{{}, {{"data", AxisSet::of({Axis::data}), {}}}, {}, {}};
  set.layout[Axis::data] = 2;
  ProgramBuilder b({"compute", "data"});
  const View sum = b.buffer("sum", DType::f32, 8, BufferKind::persistent);
  const View rate = b.buffer("rate", DType::f32, 1, BufferKind::input);
  const View count = b.buffer("count", DType::i32, 1, BufferKind::persistent);
  const View weights = b.buffer("weights", DType::f32, 8, BufferKind::persistent);
  const View moments = b.buffer("moments", DType::f32, 16, BufferKind::persistent);
  for (const View& v : {sum, count, weights, moments}) b.emit(0, Fill{v, 0}, {"state", Phase::setup});
  b.begin_step();
  b.emit(0, Fill{sum, 0}, {"sum"});
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    const View gradient = b.buffer("gradient", DType::f32, 8);
    b.emit(0, Fill{gradient, 1}, {"gradient", Phase::backward, micro_batch});
    b.emit(1, AllReduce{0, gradient}, {"reduction", Phase::gradient_sync, micro_batch});
    if (micro_batch == 0 && !first_is_added) continue;
    b.emit(0, ResidualAdd{.in = sum, .bias = {}, .residual = gradient, .out = sum, .rows = 1, .width = 8}, {"sum"});
  }
  if (trains) b.emit(0, AdamW{weights, moments.part(0, 8), moments.part(8, 8), sum, {}, count, rate}, {"update"});
  set.roles.push_back(b.take());
  return set;
}

TEST(Verify, NamesAResultOfATrainingStepThatNobodyReads) {
  EXPECT_EQ(texts(verify(two_reductions(true, true))), "");
  EXPECT_EQ(texts(verify(two_reductions(false, false))), "");  // a step that only repeats an operation
  const auto problems = verify(two_reductions(false, true));
  ASSERT_EQ(problems.size(), 1u) << texts(problems);
  EXPECT_THAT(problems[0], HasSubstr("all_reduce reduction, micro-batch 0, gradient_sync"));
  EXPECT_THAT(problems[0], HasSubstr("nothing reads its result"));
}

}  // namespace
}  // namespace harness::program
