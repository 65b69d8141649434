#include "backend/cuda/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/kernels/kernels.h"
#include "fake.h"
#include "lt.h"
#include "support/errors.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* wrong_numbers = "did not compute what its plain product does";

class TunerOverFake : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset(); }
  void TearDown() override { fake::reset(); }

  static backend::Tuning tune(const program::Program& program) {
    return tune_products(program, false, {}, 0, {.warm_up_s = 0, .limit_s = 0});  // the fewest rounds
  }
  backend::Tuning tune() const { return tune(program_); }

  std::vector<std::string> warnings_with(const backend::Tuning& tuning) const {
    backend::ExecutableRequest request;
    request.program = &program_;
    request.groups = set_.groups;
    request.settings = settings_;
    request.tuning = std::make_shared<const backend::Tuning>(tuning);
    const auto executable = cuda_backend().create(request);
    executable->connect({}, 10);
    return executable->warnings();
  }

  static config::Settings settings() {
    config::Settings s;
    s.global_batch_size = s.micro_batch_size = 2;
    s.attention = config::AttentionKind::unfused;
    return s;
  }

  const config::Settings settings_ = settings();
  const program::ProgramSet set_ =
      program::lower(workloads::build_programs({"tiny", 1, 32, 2, 64, 16}, settings_, program::Layout{}),
                     config::traits_of(config::BackendKind::cuda).fused);
  const program::Program& program_ = set_.roles.front();
};

int number_of(const ProductChoice& choice) {
  fake::LtAlgorithm algorithm;
  std::memcpy(&algorithm, choice.algorithm.data(), sizeof algorithm);
  return static_cast<int>(algorithm.number);
}

TEST_F(TunerOverFake, EveryProductGetsItsFastestProposal) {
  for (const int fast : {0, 2, 3}) {
    fake::reset({.lt_fast_algorithm = fast});
    const backend::Tuning tuning = tune();
    EXPECT_EQ(tuning.size(), needed_products(program_, false).size());
    for (const auto& [key, text] : tuning) {
      EXPECT_EQ(number_of(parse_choice(text)), fast) << key;
      EXPECT_EQ(parse_choice(text).rejected, 0) << key;
      EXPECT_NEAR(parse_choice(text).seconds, 10e-6, 1e-6) << key;
    }
    EXPECT_THAT(warnings_with(tuning), Not(Contains(HasSubstr(wrong_numbers))));
    EXPECT_THAT(fake::complaints(), IsEmpty());
  }
}

// The wrong algorithm is the fastest: only its results can exclude it.
TEST_F(TunerOverFake, AProposalThatComputesSomethingElseIsNeverChosen) {
  for (const int wrong : {2, 3}) {
    fake::reset({.lt_wrong_algorithm = wrong, .lt_fast_algorithm = wrong});
    const backend::Tuning tuning = tune();
    EXPECT_EQ(tuning.size(), needed_products(program_, false).size());
    for (const auto& [key, text] : tuning) {
      EXPECT_NE(number_of(parse_choice(text)), wrong) << key;
      EXPECT_GE(parse_choice(text).rejected, 1) << key;
    }
    EXPECT_THAT(warnings_with(tuning), Contains(HasSubstr(wrong_numbers)));
  }
}

TEST_F(TunerOverFake, AnAlgorithmThatBreaksTheDeviceIsNamed) {
  fake::reset({.lt_fatal_algorithm = 2});
  const std::string tuned = test::error_of([&] { tune(); });
  EXPECT_THAT(tuned, HasSubstr("was tried for matmul 1x"));
  EXPECT_THAT(tuned, HasSubstr("IllegalAddress"));
}

// A plain product of n x k and k x n, all of one type, with the tuner's operands.
struct SquareProduct {
  SquareProduct(std::int64_t n, std::int64_t k, program::DType type)
      : rotation({{.a = {nullptr, type}, .b = {nullptr, type}, .out = {nullptr, type}, .m = n, .n = n, .k = k}, false},
                 0, timer.stream()) {}
  Timer timer;
  Blas blas;
  const Rotation rotation;
  const Product& product = rotation.products().front();
};

TEST_F(TunerOverFake, AFewWrongElementsOfManyAreSeen) {
  fake::reset({.lt_wrong_algorithm = 3, .lt_wrong_elements = 16});  // 0.8 % of the norm of all
  SquareProduct square(512, 32, program::DType::bf16);
  const std::vector<ProductChoice> choices = square.blas.candidates(square.product, 4);
  Judge judge({square.product.op.out}, 1e-2, square.timer.stream());
  for (const ProductChoice& choice : choices) {
    EXPECT_EQ(judge.agrees(square.blas.prepare(square.product, choice)), number_of(choice) != 3);
  }
}

TEST_F(TunerOverFake, OperandsAreScaledSoThatSumsAreOfOrderOne) {
  SquareProduct square(64, 1024, program::DType::f32);
  square.blas.prepare(square.product, square.blas.default_choice(square.product))(square.timer.stream());
  synchronize(square.timer.stream());
  const backend::Tensor& out = square.product.op.out;
  double squares = 0;
  for (std::int64_t i = 0; i < out.count; ++i) squares += out.f32()[i] * out.f32()[i];
  const double deviation = std::sqrt(squares / static_cast<double>(out.count));
  EXPECT_GT(deviation, 0.5);
  EXPECT_LT(deviation, 2);
}

TEST_F(TunerOverFake, TheClocksClimbBeforeTheFirstIsTimed) {
  backend::Tuning all_but_one = tune();
  all_but_one.erase(all_but_one.begin());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(tune_products(program_, false, all_but_one, 0, {.warm_up_s = 1, .limit_s = 0}).size(), 1u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(TunerOverFake, CandidatesAreComparedByTheirMedian) {
  Timer timer;
  int calls = 0;
  const auto candidate = [&](double seconds, double once) {
    return std::vector<Blas::Run>{[&, seconds, once](Stream s) { spin(s, calls++ < 2 ? once : seconds); }};
  };
  // Far enough apart that noise of a busy machine cannot swap them.
  const auto medians = timer.medians({candidate(1e-3, 0.5), candidate(0.1, 0.5)}, 5);
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_LT(medians[0], medians[1]);
  EXPECT_LT(medians[1], 0.5);
}

}  // namespace
}  // namespace harness::cuda
