#include "backend/cuda/attention_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"
#include "fake.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr program::AttentionShape shape{2, 2, 16, 32, 32, 96, 96, true};

// A kernel of the library's: the unfused attention, slower or wrong as its number says.
class Proposed : public AttentionKernel {
 public:
  struct Traits {
    double forward_s = 0, backward_s = 0;  // longer than without
    bool wrong = false, unbuildable = false;
  };
  Proposed(const Traits& forward, const Traits& backward)
      : forward_(forward),
        backward_(backward),
        kernel_(make_unfused_attention(shape, program::DType::f32, false, false, blas_)) {}

  Run forward(const backend::Bound<program::Attention>& at) override {
    return with(kernel_->forward(at), forward_, forward_.forward_s, at.out);
  }
  Run backward(const backend::Bound<program::AttentionBackward>& at) override {
    return with(kernel_->backward(at), backward_, backward_.backward_s, at.dq);
  }

 private:
  static Run with(const Run& run, const Traits& traits, double seconds, const backend::Tensor& result) {
    if (traits.unbuildable) fail("no such kernel after all");
    return [=](Stream s) {
      run(s);
      if (traits.wrong) fill_random(s, result, 5);
      if (seconds > 0) spin(s, seconds);
    };
  }

  Traits forward_, backward_;
  Blas blas_;
  std::unique_ptr<AttentionKernel> kernel_;
};

class AttentionTuner : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Settings settings;
    settings.delay_every = 0;
    fake::reset(settings);
  }
  void TearDown() override { fake::reset(); }

  static AttentionChoice choose(const std::vector<Proposed::Traits>& kernels, double lasting_s = 0) {
    Effort effort;
    effort.rounds = 3;
    effort.lasting_s = lasting_s;
    Timer timer;
    const auto count = static_cast<int>(kernels.size());
    const auto make = [&](const AttentionEngines& engines) -> std::unique_ptr<AttentionKernel> {
      return std::make_unique<Proposed>(kernels.at(engines.forward), kernels.at(engines.backward));
    };
    return fastest_attention(shape, program::DType::f32, {count, count}, make, timer, effort);
  }
};

constexpr double slow = 0.2;  // so much that a busy machine does not turn it round

TEST_F(AttentionTuner, EachDirectionHasItsOwnFastestKernel) {
  for (const double lasting_s : {0.0, 0.01}) {
    const AttentionChoice best = choose({{.forward_s = slow}, {.backward_s = slow}}, lasting_s);
    EXPECT_EQ(best.engines, (AttentionEngines{1, 0}));
    EXPECT_LT(best.forward_s, slow);
    EXPECT_LT(best.backward_s, slow);
    EXPECT_EQ(best.rejected, 0);
  }
  EXPECT_THAT(fake::complaints(), IsEmpty());
}

TEST_F(AttentionTuner, AKernelThatComputesSomethingElseIsNeverChosen) {
  const AttentionChoice best = choose({{.forward_s = slow, .backward_s = slow}, {.wrong = true}});
  EXPECT_EQ(best.engines, (AttentionEngines{0, 0}));
  EXPECT_EQ(best.rejected, 2);
}

TEST_F(AttentionTuner, WhatCannotBeBuiltIsPassedOver) {
  EXPECT_EQ(choose({{.unbuildable = true}, {}}).engines, (AttentionEngines{1, 1}));
  try {
    choose({{.unbuildable = true}});
    FAIL() << "a kernel was chosen";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("no kernel runs for attention 2x2x16 q:32/96 k:32/96 causal, forward"));
  }
}

TEST_F(AttentionTuner, OneKernelIsTimedAlone) {
  Timer timer;
  const auto make = [](const AttentionEngines&) -> std::unique_ptr<AttentionKernel> {
    return std::make_unique<Proposed>(Proposed::Traits{.forward_s = 0.01}, Proposed::Traits{.backward_s = 0.03});
  };
  const AttentionChoice timed = time_attention(shape, program::DType::f32, {2, 3}, make, timer, 0.1);
  EXPECT_GE(timed.forward_s, 0.01);
  EXPECT_GE(timed.backward_s, 0.03);
  EXPECT_EQ(timed.engines, (AttentionEngines{2, 3}));
}

TEST(AttentionChoice, IsReadAsItIsPrinted) {
  for (const int rejected : {0, 2}) {
    const AttentionChoice choice{{1, -1}, 0.5, 0.0015, rejected};
    EXPECT_EQ(parse_attention(print_choice(choice)), choice) << print_choice(choice);
  }
  for (const char* text : {"", "1", "1 0 0.5", "1 0 0.5 x", "1 0 0.5 0.1 2 3", "a 0 0.5 0.1"}) {
    EXPECT_THROW(parse_attention(text), Error) << text;
  }
}

TEST(AttentionChoice, EveryShapeOfAStepHasAKeyOfItsOwn) {
  config::Settings settings;
  settings.global_batch_size = settings.micro_batch_size = 2;
  const auto set = program::lower(workloads::build_programs({"tiny", 3, 32, 2, 64, 16}, settings, program::Layout{}),
                                  config::traits_of(config::BackendKind::cuda).fused);
  const auto shapes = attention_shapes(set.roles.front());
  ASSERT_THAT(shapes, SizeIs(1));  // all layers and both directions have one
  std::set<std::string> keys{key_of(shapes[0])};
  program::AttentionShape other = shapes[0];
  other.causal = false;
  keys.insert(key_of(other));
  other.query_stride += 8;
  keys.insert(key_of(other));
  EXPECT_THAT(keys, SizeIs(3));
}

}  // namespace
}  // namespace harness::cuda
