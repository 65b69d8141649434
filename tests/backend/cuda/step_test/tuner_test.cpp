#include "backend/cuda/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include "backend/cuda/algorithm.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/judge.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/trial.h"
#include "fake.h"
#include "lt_problem.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* wrong_numbers = "did not compute what its plain product does";

class TunerOverFake : public ::testing::Test {
 protected:
  void SetUp() override { use(-1); }
  void TearDown() override { fake::reset(); }

  void use(int wrong_algorithm) {
    fake::Settings fake_settings;
    fake_settings.lt_wrong_algorithm = wrong_algorithm;
    fake::reset(fake_settings);
  }
  backend::Tuning tune(const Effort& effort = quick) const { return tune_products(program_, false, {}, 0, effort); }
  // From here on the fastest tile is one that no proposal has.
  void only_a_variant_is_fast() const {
    fake::Settings fake_settings;
    fake_settings.lt_fast_tile = unproposed_tile;
    fake::reset(fake_settings);
  }
  // From here on that tile breaks the device.
  void a_variant_is_fatal() const {
    fake::Settings fake_settings;
    fake_settings.lt_fatal_tile = unproposed_tile;
    fake::reset(fake_settings);
  }

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

  // All that there is to try is tried, however long that takes here.
  static constexpr double no_limit_s = 10000;
  static constexpr Effort quick{
      .warm_up_s = 0, .limit_s = no_limit_s, .varied = 0, .quick_s = 1e-5, .rounds = 3, .lasting_s = 0};
  static constexpr Effort with_variants{
      .warm_up_s = 0, .limit_s = no_limit_s, .varied = 1, .quick_s = 1e-5, .rounds = 3, .lasting_s = 0};
  static constexpr std::uint32_t unproposed_tile = CUBLASLT_MATMUL_TILE_256x128;
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

TEST_F(TunerOverFake, EveryProductGetsAChoiceAndNoneIsRejectedWhereAllAreRight) {
  const backend::Tuning tuning = tune();
  EXPECT_EQ(tuning.size(), needed_products(program_, false).size());
  for (const auto& [key, text] : tuning) {
    EXPECT_EQ(parse_choice(text).rejected, 0) << key;
    EXPECT_GT(parse_choice(text).seconds, 0) << key;
  }
  EXPECT_THAT(warnings_with(tuning), Not(Contains(HasSubstr(wrong_numbers))));
  EXPECT_THAT(fake::complaints(), IsEmpty());
}

// The wrong one is the fastest by far: nothing but its numbers speaks against it.
TEST_F(TunerOverFake, AProposalThatComputesSomethingElseIsNeverChosen) {
  for (const int wrong : {2, 3}) {
    use(wrong);
    const backend::Tuning tuning = tune();
    EXPECT_EQ(tuning.size(), needed_products(program_, false).size());
    int rejected = 0;
    for (const auto& [key, text] : tuning) {
      EXPECT_NE(number_of(parse_choice(text)), wrong) << key;
      rejected += parse_choice(text).rejected;
    }
    EXPECT_GE(rejected, static_cast<int>(tuning.size()) / 2);  // a right one is seldom faster by chance
    EXPECT_THAT(warnings_with(tuning), Contains(HasSubstr(wrong_numbers)));
  }
}

std::uint32_t tile_of(const ProductChoice& choice) {
  fake::LtAlgorithm algorithm;
  std::memcpy(&algorithm, choice.algorithm.data(), sizeof algorithm);
  return algorithm.tile;
}

TEST_F(TunerOverFake, AVariantThatTheLibraryDoesNotProposeIsFound) {
  only_a_variant_is_fast();
  const backend::Tuning tuning = tune(with_variants);
  const auto found = std::ranges::count_if(
      tuning, [](const auto& entry) { return tile_of(parse_choice(entry.second)) == unproposed_tile; });
  EXPECT_EQ(found, std::ssize(tuning));
  EXPECT_THAT(fake::complaints(), IsEmpty());
}

TEST_F(TunerOverFake, WhenItsTimeIsUpWhatWasFoundUntilThenServes) {
  only_a_variant_is_fast();
  Effort effort = with_variants;
  effort.limit_s = 0;
  const backend::Tuning tuning = tune(effort);
  EXPECT_EQ(tuning.size(), needed_products(program_, false).size());
  for (const auto& [key, text] : tuning) EXPECT_EQ(tile_of(parse_choice(text)), CUBLASLT_MATMUL_TILE_128x128) << key;
}

TEST_F(TunerOverFake, AProposalThatBreaksTheDeviceIsNamed) {
  a_variant_is_fatal();
  try {
    tune(with_variants);
    FAIL() << "nothing was said";
  } catch (const DeviceFailed& e) {
    EXPECT_THAT(e.what(), HasSubstr("was tried for matmul 1x"));
    EXPECT_THAT(e.what(), HasSubstr("illegal"));
  }
}

TEST_F(TunerOverFake, AChoiceThatBreaksTheDeviceWhileItIsTimedAloneIsNamed) {
  only_a_variant_is_fast();
  const backend::Tuning tuning = tune(with_variants);
  a_variant_is_fatal();
  try {
    static_cast<void>(time_products(program_, false, tuning, 0, 0.05));
    FAIL() << "nothing was said";
  } catch (const DeviceFailed& e) {
    EXPECT_THAT(e.what(), HasSubstr("was timed alone"));
  }
}

// A plain product of n x k and k x n, all of one type, with the operands that a trial gives it.
struct SquareProduct {
  SquareProduct(std::int64_t n, std::int64_t k, program::DType type)
      : operation(operation_of(n, k)),
        product(product_of(operation, type, type, type, false, 256)),
        rotation(product, operation, 0),
        at(rotation.operands().front()) {
    rotation.fill(timer.stream());
  }
  static program::Matmul operation_of(std::int64_t n, std::int64_t k) {
    program::Matmul op;
    op.m = op.n = n;
    op.k = k;
    return op;
  }

  const program::Matmul operation;
  const Product product;
  const Rotation rotation;
  const Operands& at;
  Timer timer;
  Blas blas;
};

TEST_F(TunerOverFake, AFewWrongElementsOfManyAreSeen) {
  fake::Settings settings;
  settings.lt_wrong_algorithm = 3;
  settings.lt_wrong_elements = 16;  // 0.8 % of the norm of all
  fake::reset(settings);
  SquareProduct square(512, 32, program::DType::bf16);
  const std::vector<ProductChoice> choices = square.blas.candidates(square.product, square.at, 4);
  Judge judge({square.at.out}, 1e-2, 1, square.timer.stream());
  judge.set_reference(square.blas.prepare(square.product, square.at, choices.front()));
  for (const ProductChoice& choice : choices) {
    EXPECT_EQ(judge.agrees(square.blas.prepare(square.product, square.at, choice)), number_of(choice) != 3);
  }
}

TEST_F(TunerOverFake, OperandsAreScaledSoThatSumsAreOfOrderOne) {
  SquareProduct square(64, 1024, program::DType::f32);
  square.blas.prepare(square.product, square.at,
                      square.blas.default_choice(square.product, square.at))(square.timer.stream());
  synchronize(square.timer.stream());
  const backend::Tensor& out = square.at.out;
  double squares = 0;
  for (std::int64_t i = 0; i < out.count; ++i) squares += out.f32()[i] * out.f32()[i];
  const double deviation = std::sqrt(squares / static_cast<double>(out.count));
  EXPECT_GT(deviation, 0.5);
  EXPECT_LT(deviation, 2);
}

TEST_F(TunerOverFake, FinalistsThatLastAreRunAloneToo) {
  only_a_variant_is_fast();
  Effort effort = with_variants;
  effort.lasting_s = 1e-3;
  for (const auto& [key, text] : tune(effort)) {
    EXPECT_EQ(tile_of(parse_choice(text)), unproposed_tile) << key;
    EXPECT_NEAR(parse_choice(text).seconds, 10e-6, 1e-6) << key;
  }
}

TEST_F(TunerOverFake, VariantsDifferInOneThingAndThoseThatCannotRunAreLeftOut) {
  const NeededProduct needed = needed_products(program_, false).front();
  const Rotation rotation(needed.product, needed.operation, 0);
  Blas blas;
  const ProductChoice choice = blas.candidates(needed.product, rotation.operands().front(), 1).front();
  std::vector<ProductChoice> variants;
  for (const std::string& algorithm : variants_of(choice.algorithm, 40)) variants.push_back({choice.fused, algorithm});
  EXPECT_EQ(variants.size(), 8u + 1u + 2u + 3u);  // clusters, order of blocks, custom options, large tiles
  // The last tile and six clusters.
  EXPECT_EQ(blas.runnable(needed.product, rotation.operands().front(), variants).size(), variants.size() - 7);
  EXPECT_EQ(variants_of(choice.algorithm, 8).size(), 8u);
}

TEST_F(TunerOverFake, EveryProductOfTheStepIsTimedAlone) {
  const backend::Tuning tuning = tune();
  const auto timings = time_products(program_, false, tuning, 0, 0.05);
  std::set<std::string> forms;
  auto timing = timings.begin();
  for (const program::Operation& operation : program_.step) {
    if (!std::holds_alternative<program::Matmul>(operation.action)) continue;
    ASSERT_NE(timing, timings.end());
    EXPECT_EQ(&program_.step.at(timing->operation), &operation);
    EXPECT_GT(timing->seconds, 0);
    forms.insert(timing->form);
    ++timing;
  }
  EXPECT_EQ(timing, timings.end());
  EXPECT_THAT(forms, Contains("plain"));
  backend::Tuning separate = tuning;
  for (auto& [key, text] : separate) {
    ProductChoice choice = parse_choice(text);
    if (choice.fused) choice.algorithm.clear();
    choice.fused = false;
    text = print_choice(choice);
  }
  std::set<std::string> forms_of_separate;
  for (const backend::AloneTiming& t : time_products(program_, false, separate, 0, 0.05)) {
    forms_of_separate.insert(t.form);
  }
  EXPECT_THAT(forms_of_separate, ElementsAre("plain", "separate"));
}

TEST_F(TunerOverFake, TheClocksClimbBeforeTheFirstIsTimed) {
  backend::Tuning all_but_one = tune();
  all_but_one.erase(all_but_one.begin());
  Effort effort = quick;
  effort.proposals = 1;
  effort.warm_up_s = 1;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(tune_products(program_, false, all_but_one, 0, effort).size(), 1u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(TunerOverFake, FinalistsAreComparedByTheirMedian) {
  Timer timer;
  int calls = 0;
  const auto contestant = [&](double seconds, double once) {
    return std::vector<Blas::Run>{[&, seconds, once](Stream s) { spin(s, calls++ < 2 ? once : seconds); }};
  };
  // So far apart that a busy machine does not turn them round.
  const auto medians = timer.medians({contestant(1e-3, 0.5), contestant(0.1, 0.5)}, 5);
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_LT(medians[0], medians[1]);
  EXPECT_LT(medians[1], 0.5);
}

}  // namespace
}  // namespace harness::cuda
