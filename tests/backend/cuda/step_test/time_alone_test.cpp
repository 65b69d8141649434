#include "backend/cuda/time_alone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/tuner.h"
#include "fake.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class TimeAlone : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset(); }
  void TearDown() override { fake::reset(); }

  static config::Settings settings() {
    config::Settings s;
    s.global_batch_size = s.micro_batch_size = 2;
    return s;
  }
  const program::ProgramSet set_ =
      program::lower(workloads::build_programs({"tiny", 3, 32, 2, 64, 16}, settings(), program::Layout{}),
                     config::traits_of(config::BackendKind::cuda).fused);
  const program::Program& program_ = set_.roles.front();
};

TEST_F(TimeAlone, EveryProductOfTheStepWithItsForm) {
  const auto forms_with = [&](const backend::Tuning& tuning) {
    const auto timings = time_products(program_, false, tuning, 0, 0.05);
    std::set<std::string> forms;
    auto timing = timings.begin();
    for (const program::Operation& operation : program_.step) {
      if (!std::holds_alternative<program::Matmul>(operation.action)) continue;
      EXPECT_NE(timing, timings.end());
      if (timing == timings.end()) break;
      EXPECT_EQ(&program_.step.at(timing->operation), &operation);
      EXPECT_GT(timing->seconds, 0);
      forms.insert(timing->form);
      ++timing;
    }
    EXPECT_EQ(timing, timings.end());
    return forms;
  };
  EXPECT_THAT(forms_with({}), ElementsAre("fused", "plain"));
  backend::Tuning separate;
  for (const NeededProduct& n : needed_products(program_, false)) {
    separate[key_of(n.product)] = print_choice({false, "", 0});
  }
  EXPECT_THAT(forms_with(separate), ElementsAre("plain", "separate"));
}

// The unfused attention, so much slower in each direction.
class Slower : public AttentionKernel {
 public:
  static constexpr program::AttentionShape shape{2, 2, 16, 32, 32, 96, 96, true};
  static constexpr double forward_s = 0.01, backward_s = 0.03;

  Run forward(const backend::Bound<program::Attention>& at) override { return after(kernel_->forward(at), forward_s); }
  Run backward(const backend::Bound<program::AttentionBackward>& at) override {
    return after(kernel_->backward(at), backward_s);
  }

 private:
  static Run after(const Run& run, double seconds) {
    return [=](Stream s) {
      run(s);
      spin(s, seconds);
    };
  }
  Blas blas_;
  std::unique_ptr<AttentionKernel> kernel_ = make_unfused_attention(shape, program::DType::f32, false, false, blas_);
};

TEST_F(TimeAlone, EachDirectionOfAnAttention) {
  Slower kernel;
  Timer timer;
  const AttentionSeconds timed = time_attention(kernel, Slower::shape, program::DType::f32, timer, 0.1);
  EXPECT_GE(timed.forward, Slower::forward_s);
  EXPECT_GE(timed.backward, Slower::backward_s);
}

TEST_F(TimeAlone, AllLayersAndBothDirectionsHaveOneAttentionShape) {
  EXPECT_THAT(attention_shapes(program_), SizeIs(1));
}

}  // namespace
}  // namespace harness::cuda
